//! Two readers of CDDL that others wrote have to agree with our walk about records made at random, good and bad.
//!
//! `cddl` reads the document's CDDL verbatim, and the records' CBOR form. It can take for ever, die of a deep record, or
//! of memory: so it runs in a process of its own, with a time limit, on records whose children have no children.
//! `cddl-cat` reads JSON and CBOR, but not all of the CDDL: it gets the record's part with the edits made below.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use cddl_cat::context::BasicContext;
use cddl_cat::flatten::flatten_from_str;
use data_encoding::HEXLOWER;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use registration::Violation;
use registration::conversation::{ConversationRecord, Form};
use scitt::SignedStatement;
use scitt::cbor::Writer;
use serde_json::{Value, json};
use testkit::{conversation, conversation_json, json_as_cbor};

const CDDL: &str = include_str!("../../../vectors/conversation/agent-conversation.cddl");
/// How long the oracle may think about one record.
const PATIENCE: Duration = Duration::from_secs(5);
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

fn timestamp() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("2026-02-01T12:00:00Z")),
        Just(json!("2026-02-30T23:59:60.5+01:00")),
        (100_000_000_000_u64..2_000_000_000_000).prop_map(Value::from),
    ]
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![Just(""), Just("a"), Just("naïve 🦀")].prop_map(Value::from)
}

/// Something that an open map may hold, or that takes a member's place.
fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1_700_000_000_000_u64)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!("noon")),
        Just(json!("2026-13-01T12:00:00Z")),
        Just(json!([])),
        Just(json!(["a"])),
        Just(json!({})),
        Just(json!({ "type": "user" })),
        Just(json!([{ "type": "nothing" }])),
    ]
}

/// A map of these members, each of the optional ones there or not.
fn map(
    required: Vec<(&'static str, BoxedStrategy<Value>)>,
    optional: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
    let member = |(name, value): (&'static str, BoxedStrategy<Value>), always: bool| {
        (if always { Just(true).boxed() } else { any::<bool>().boxed() }, value)
            .prop_map(move |(there, value)| there.then(|| (name.to_owned(), value)))
            .boxed()
    };
    let required = required.into_iter().map(|it| member(it, true));
    let optional = optional.into_iter().map(|it| member(it, false));
    let members: Vec<_> = required.chain(optional).collect();
    members.prop_map(|members| Value::Object(members.into_iter().flatten().collect())).boxed()
}

fn list(of: BoxedStrategy<Value>, most: usize) -> BoxedStrategy<Value> {
    proptest::collection::vec(of, 0..=most).prop_map(Value::from).boxed()
}

fn entry(children: Option<BoxedStrategy<Value>>) -> BoxedStrategy<Value> {
    let common = || {
        let mut members =
            vec![("timestamp", timestamp().boxed()), ("id", text().boxed()), ("x", anything().boxed())];
        members.extend(children.clone().map(|entry| ("children", list(entry, 1))));
        members
    };
    let kind = |name: &'static str| ("type", Just(json!(name)).boxed());
    let with = |more: Vec<(&'static str, BoxedStrategy<Value>)>| [more, common()].concat();
    let usage = map(
        vec![],
        vec![("input", (0..9u64).prop_map(Value::from).boxed()), ("cost", Just(json!(0.5)).boxed())],
    );
    prop_oneof![
        map(
            vec![("type", prop_oneof![Just(json!("user")), Just(json!("assistant"))].boxed())],
            with(vec![
                ("content", anything().boxed()),
                ("model-id", text().boxed()),
                ("parent-id", text().boxed()),
                ("token-usage", usage)
            ])
        ),
        map(
            vec![kind("tool-call"), ("name", text().boxed()), ("input", anything().boxed())],
            with(vec![("call-id", text().boxed())])
        ),
        map(
            vec![kind("tool-result"), ("output", anything().boxed())],
            with(vec![
                ("call-id", text().boxed()),
                ("status", text().boxed()),
                ("is-error", Just(json!(true)).boxed())
            ])
        ),
        map(
            vec![kind("reasoning"), ("content", anything().boxed())],
            with(vec![("encrypted", text().boxed()), ("subject", text().boxed())])
        ),
        map(
            vec![kind("system-event"), ("event-type", text().boxed())],
            with(vec![("data", Just(json!({ "a": 1 })).boxed())])
        ),
    ]
    .boxed()
}

fn file() -> BoxedStrategy<Value> {
    let contributor = || map(vec![("type", Just(json!("ai")).boxed())], vec![("model-id", text().boxed())]);
    let line = || (1..9u64).prop_map(Value::from).boxed();
    let range = map(
        vec![("start-line", line()), ("end-line", line())],
        vec![
            ("content-hash", text().boxed()),
            ("content-hash-alg", text().boxed()),
            ("contributor", contributor()),
        ],
    );
    let resource = map(vec![("type", text().boxed()), ("url", text().boxed())], vec![]);
    let conversation = map(
        vec![("ranges", list(range, 2))],
        vec![("url", text().boxed()), ("contributor", contributor()), ("related", list(resource, 1))],
    );
    map(vec![("path", text().boxed()), ("conversations", list(conversation, 1))], vec![])
}

fn record() -> BoxedStrategy<Value> {
    let vcs = || {
        map(vec![("type", text().boxed())], vec![("revision", text().boxed()), ("branch", text().boxed())])
    };
    let agent = map(
        vec![("model-id", text().boxed()), ("model-provider", text().boxed())],
        vec![("models", list(text().boxed(), 2)), ("cli-name", text().boxed()), ("x", anything().boxed())],
    );
    let environment = map(
        vec![("working-dir", text().boxed())],
        vec![("vcs", vcs()), ("sandboxes", list(text().boxed(), 1))],
    );
    let session = map(
        vec![
            ("session-id", text().boxed()),
            ("agent-meta", agent),
            ("entries", list(entry(Some(entry(None))), 3)),
        ],
        vec![
            ("format", text().boxed()),
            ("session-start", timestamp().boxed()),
            ("session-end", timestamp().boxed()),
            ("environment", environment),
        ],
    );
    map(
        vec![("version", text().boxed()), ("id", text().boxed()), ("session", session)],
        vec![
            ("created", timestamp().boxed()),
            ("file-attribution", map(vec![("files", list(file(), 2))], vec![])),
            ("vcs", vcs()),
            ("recording-agent", map(vec![("name", text().boxed())], vec![("version", text().boxed())])),
            ("x", anything().boxed()),
        ],
    )
}

/// One value somewhere in a record removed, replaced or added to.
#[derive(Clone, Debug)]
enum Change {
    Remove(usize),
    Replace(usize, Value),
    Add(usize, Value),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Remove),
        (any::<usize>(), anything()).prop_map(|(at, value)| Change::Replace(at, value)),
        (any::<usize>(), anything()).prop_map(|(at, value)| Change::Add(at, value)),
    ]
}

/// Pointers to every value but the record itself.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Array(items) => {
            items.iter().enumerate().map(|(i, item)| (format!("{at}/{i}"), item)).collect()
        }
        Value::Object(members) => members.iter().map(|(name, item)| (format!("{at}/{name}"), item)).collect(),
        _ => Vec::new(),
    };
    for (pointer, value) in inner {
        pointers(value, &pointer, found);
        found.push(pointer);
    }
}

fn apply(record: &mut Value, change: &Change) {
    let mut places = Vec::new();
    pointers(record, "", &mut places);
    let place = |at: usize| places[at % places.len()].clone();
    match change {
        Change::Replace(at, value) => *record.pointer_mut(&place(*at)).unwrap() = value.clone(),
        Change::Remove(at) => {
            let place = place(*at);
            let (parent, name) = place.rsplit_once('/').unwrap();
            match record.pointer_mut(parent).unwrap() {
                Value::Object(members) => drop(members.remove(name)),
                Value::Array(items) => drop(items.remove(name.parse().unwrap())),
                _ => {}
            }
        }
        Change::Add(at, value) => match record.pointer_mut(&place(*at)).unwrap() {
            Value::Object(members) => drop(members.insert("added".to_owned(), value.clone())),
            Value::Array(items) => items.push(value.clone()),
            _ => {}
        },
    }
}

/// The same records on every run: good ones, and ones with a change or two.
fn records(count: u32) -> Vec<Value> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = (record(), proptest::collection::vec(change(), 0..3)).prop_map(|(mut record, changes)| {
        changes.iter().for_each(|change| apply(&mut record, change));
        record
    });
    let made = (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current());
    [conversation_json(0)].into_iter().chain(made).collect()
}

/// The record in CBOR, the members of every map in the order in which the CDDL first names them. In other orders `cddl`
/// refuses maps that it takes in this one: it tries a member's value against the types of others.
fn in_the_order_of_the_cddl(record: &Value) -> Vec<u8> {
    let place =
        |name: &str| CDDL.find(&format!("\n{name}: ")).or_else(|| CDDL.find(&format!("\n? {name}: ")));
    let mut writer = Writer::new();
    write_ordered(record, &|name| place(name).unwrap_or(CDDL.len()), &mut writer);
    writer.into_bytes()
}

fn write_ordered(value: &Value, place: &dyn Fn(&str) -> usize, writer: &mut Writer) {
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
