//! Records of the fixtures against three readers: the rules of `registration`, and two libraries that read the draft's
//! CDDL. `cddl` reads it verbatim; `cddl-cat` reads the record's part with edits.

use cddl_cat::context::BasicContext;
use cddl_cat::flatten::flatten_from_str;
use registration::conversation::{ConversationRecord, Form};
use scitt::cbor::ItemWriter;
use serde_json::Value;
use testkit::{conversation, json_as_cbor};
use translators::SessionRecord;

use crate::fixtures::{SMALL, divided, sources, translated};

const CDDL: &str = include_str!("../../../../vectors/conversation/agent-conversation.cddl");

fn records() -> Vec<SessionRecord> {
    let translations =
        sources().into_iter().flat_map(|source| [translated(&source), divided(&source, SMALL)]);
    translations.flat_map(|translation| translation.records).map(|(record, _)| record).collect()
}

#[test]
fn every_record_keeps_the_rules_of_the_profile() {
    let header = conversation(0, Form::Json);
    for record in records() {
        let read = ConversationRecord::read(header.header(), record.bytes()).unwrap();
        assert_eq!(read.session.id.to_string(), record.session_id());
    }
}

#[test]
fn cddl_cat_accepts_every_record() {
    let (part, _) = CDDL.split_once("; SCITT-interoperable COSE Envelope").unwrap();
    let pattern = part.lines().find_map(|line| line.strip_prefix("date-time-regexp = ")).unwrap();
    let kept = part.lines().filter(|line| !line.starts_with("start = ") && !line.contains("-regexp = "));
    let edited = kept
        .collect::<Vec<_>>()
        .join("\n")
        .replace("date-time-regexp", &format!("\"^{}$\"", pattern.trim_matches('"')))
        .replace("tstr .regexp uri-regexp", "tstr")
        .replace("cost: number", "cost: int / float");
    let context = BasicContext::new(flatten_from_str(&edited).unwrap());
    let rule = &context.rules["verifiable-agent-record"];
    for record in records() {
        cddl_cat::json::validate_json(rule, &record.value(), &context).unwrap();
        let cbor: ciborium::Value =
            ciborium::from_reader(&json_as_cbor(&record.value()).encode()[..]).unwrap();
        cddl_cat::cbor::validate_cbor(rule, &cbor, &context).unwrap();
    }
}

#[test]
fn cddl_accepts_every_record_by_the_document_verbatim() {
    for record in records() {
        let cbor = in_the_order_of_the_cddl(&record.value());
        cddl::validate_cbor_from_slice(CDDL, &cbor, None).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The record in CBOR, the members of each map in the order of the CDDL: `cddl` refuses other orders.
fn in_the_order_of_the_cddl(record: &Value) -> Vec<u8> {
    let mut writer = ItemWriter::new();
    write_ordered(record, &mut writer);
    writer.into_bytes()
}

fn write_ordered(value: &Value, writer: &mut ItemWriter) {
    let place = |name: &str| {
        let found = CDDL.find(&format!("\n{name}: ")).or_else(|| CDDL.find(&format!("\n? {name}: ")));
        found.unwrap_or(CDDL.len())
    };
    match value {
        Value::Array(items) => {
            writer.array(items.len());
            items.iter().for_each(|item| write_ordered(item, writer));
        }
        Value::Object(members) => {
            let mut ordered: Vec<(&String, &Value)> = members.iter().collect();
            ordered.sort_by_key(|(name, _)| (place(name), name.to_string()));
            writer.map(ordered.len());
            for (name, value) in ordered {
                write_ordered(value, writer.text(name));
            }
        }
        plain => drop(writer.raw(&json_as_cbor(plain).encode())),
    }
}
