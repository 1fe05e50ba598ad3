//! Two readers of CDDL that others wrote have to agree with our walk about records made at random, good and bad.
//!
//! `cddl` reads the document's CDDL verbatim, and the records' CBOR form. It can take for ever, die of a deep record, or
//! of memory: so it runs in a process of its own, with a time limit, on records whose children have no children.
//! `cddl-cat` reads JSON and CBOR, but not all of the CDDL: it gets the record's part with the edits made below.

#![allow(clippy::unwrap_used)]

mod records;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use cddl_cat::context::BasicContext;
use cddl_cat::flatten::flatten_from_str;
use data_encoding::HEXLOWER;
use registration::Violation;
use registration::conversation::{ConversationRecord, Form};
use scitt::SignedStatement;
use scitt::cbor::ItemWriter;
use serde_json::Value;
use testkit::{conversation, json_as_cbor};

use crate::records::records;

const CDDL: &str = include_str!("../../../../vectors/conversation/agent-conversation.cddl");
/// How long the oracle may think about one record on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Set in the process that is the oracle.
const I_AM_THE_ORACLE: &str = "TABELLION_TEST_CDDL_ORACLE";
/// How many records each oracle judges: `cddl` takes a quarter of a second for each.
const CDDL_RECORDS: u32 = 50;
const CDDL_CAT_RECORDS: u32 = 300;

/// What our walk says; rules that the CDDL does not know cannot be broken by the records made here.
fn ours(payload: &[u8]) -> Result<(), Violation> {
    let header: SignedStatement = conversation(0, Form::Json);
    ConversationRecord::read(header.header(), payload).map(drop)
}

/// The record's part of the CDDL in the words that `cddl-cat` knows: patterns in place, no `number`, no envelope.
fn cddl_for_cddl_cat() -> String {
    let (record, _) = CDDL.split_once("; SCITT-interoperable COSE Envelope").unwrap();
    let pattern = record.lines().find_map(|line| line.strip_prefix("date-time-regexp = ")).unwrap();
    let record = record
        .lines()
        .filter(|line| !line.starts_with("start = ") && !line.contains("-regexp = "))
        .collect::<Vec<_>>()
        .join("\n");
    let anchored = format!("\"^{}$\"", pattern.trim_matches('"'));
    record
        .replace("date-time-regexp", &anchored)
        .replace("tstr .regexp uri-regexp", "tstr")
        .replace("cost: number", "cost: int / float")
}

struct CddlCat(BasicContext);

impl CddlCat {
    fn new() -> Self {
        CddlCat(BasicContext::new(flatten_from_str(&cddl_for_cddl_cat()).unwrap()))
    }

    fn json(&self, record: &Value) -> Result<(), String> {
        let rule = &self.0.rules["verifiable-agent-record"];
        cddl_cat::json::validate_json(rule, record, &self.0).map_err(|error| error.to_string())
    }

    fn cbor(&self, record: &[u8]) -> Result<(), String> {
        let rule = &self.0.rules["verifiable-agent-record"];
        let value: ciborium::Value = ciborium::from_reader(record).unwrap();
        cddl_cat::cbor::validate_cbor(rule, &value, &self.0).map_err(|error| error.to_string())
    }
}

/// `cddl` in another process: a record's hex on a line in, `ok` or why not on a line out.
struct Cddl {
    process: Child,
    answers: Receiver<String>,
}

impl Cddl {
    fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_oracle_answers_line_by_line", "--nocapture", "--test-threads=1"])
            .env(I_AM_THE_ORACLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (send, answers) = channel();
        std::thread::spawn(move || {
            let answers = lines
                .map_while(Result::ok)
                .filter_map(|line| Some(line.split_once("oracle: ")?.1.to_owned()));
            answers.for_each(|answer| drop(send.send(answer)));
        });
        Cddl { process, answers }
    }

    fn cbor(&mut self, record: &[u8]) -> Result<(), String> {
        let line = HEXLOWER.encode(record) + "\n";
        self.process.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let answer = self.answers.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            panic!("the oracle died or thought for more than {PATIENCE:?} about {}", line.trim())
        });
        if answer == "ok" { Ok(()) } else { Err(answer) }
    }
}

impl Drop for Cddl {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_oracle_answers_line_by_line() {
    if std::env::var_os(I_AM_THE_ORACLE).is_none() {
        return;
    }
    for line in std::io::stdin().lines() {
        let record = HEXLOWER.decode(line.unwrap().as_bytes()).unwrap();
        let answer = match cddl::validate_cbor_from_slice(CDDL, &record, None) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string().lines().collect::<Vec<_>>().join(" "),
        };
        println!("oracle: {answer}");
    }
}

/// The record in CBOR, the members of every map in the order in which the CDDL first names them. In other orders `cddl`
/// refuses maps that it takes in this one: it tries a member's value against the types of others.
fn in_the_order_of_the_cddl(record: &Value) -> Vec<u8> {
    let place =
        |name: &str| CDDL.find(&format!("\n{name}: ")).or_else(|| CDDL.find(&format!("\n? {name}: ")));
    let mut writer = ItemWriter::new();
    write_ordered(record, &|name| place(name).unwrap_or(CDDL.len()), &mut writer);
    writer.into_bytes()
}

fn write_ordered(value: &Value, place: &dyn Fn(&str) -> usize, writer: &mut ItemWriter) {
    match value {
        Value::Array(items) => {
            writer.array(items.len());
            items.iter().for_each(|item| write_ordered(item, place, writer));
        }
        Value::Object(members) => {
            let mut ordered: Vec<(&String, &Value)> = members.iter().collect();
            ordered.sort_by_key(|(name, _)| (place(name), name.to_string()));
            writer.map(ordered.len());
            for (name, value) in ordered {
                write_ordered(value, place, writer.text(name));
            }
        }
        plain => drop(writer.raw(&json_as_cbor(plain).encode())),
    }
}

/// Where `cddl` sees no mistake: it does not miss a session-id, whose type is a choice, and takes an array or map for the
/// text that is in it.
fn cddl_is_lax(record: &Value, violation: &Violation) -> bool {
    let place = violation.place.to_string();
    let pointer = place.strip_prefix("payload").unwrap();
    let found = record.pointer(pointer);
    pointer == "/session/session-id" || found.is_some_and(|value| value.is_array() || value.is_object())
}

fn agree(oracle: &str, record: &Value, ours: &Result<(), Violation>, theirs: &Result<(), String>) {
    assert_eq!(
        ours.is_ok(),
        theirs.is_ok(),
        "{oracle} disagrees:\nours: {ours:?}\ntheirs: {theirs:?}\n{record}"
    );
}

#[test]
fn cddl_cat_agrees_in_json_and_cbor() {
    let oracle = CddlCat::new();
    let mut good = 0;
    for record in records(CDDL_CAT_RECORDS) {
        let cbor = json_as_cbor(&record).encode();
        let json = ours(record.to_string().as_bytes());
        agree("cddl-cat on JSON", &record, &json, &oracle.json(&record));
        agree("cddl-cat on CBOR", &record, &ours(&cbor), &oracle.cbor(&cbor));
        good += u32::from(json.is_ok());
    }
    assert!((60..240).contains(&good), "{good} of {CDDL_CAT_RECORDS} are good");
}

#[test]
fn cddl_agrees_with_the_document_verbatim() {
    let mut oracle = Cddl::start();
    for record in records(CDDL_RECORDS) {
        let cbor = in_the_order_of_the_cddl(&record);
        match ours(&cbor) {
            Err(violation) if cddl_is_lax(&record, &violation) => {}
            ours => agree("cddl", &record, &ours, &oracle.cbor(&cbor)),
        }
    }
}
