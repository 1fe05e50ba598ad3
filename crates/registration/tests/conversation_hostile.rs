//! Conversation records of people who mean no good: refused at once, by name, and without a large answer.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use registration::Violation;
use registration::conversation::{ConversationRecord, Form};
use scitt::cbor;
use serde_json::{Value, json};
use testkit::{conversation, conversation_json, json_as_cbor};

fn read(payload: &[u8]) -> Result<ConversationRecord, Violation> {
    ConversationRecord::read(conversation(0, Form::Json).header(), payload)
}

/// The rule and the place of a refusal. What takes more than linear time does not end before a test is given up.
fn refused(payload: &[u8]) -> (String, String) {
    let violation = read(payload).unwrap_err();
    assert!(violation.to_string().len() < 2000, "an answer does not grow with the statement");
    (violation.rule.as_str().to_owned(), violation.place.to_string())
}

/// The record with this text in place of the content of its first entry.
fn with_content(content: &str) -> Vec<u8> {
    conversation_json(0).to_string().replace("\"how many tests?\"", content).into_bytes()
}

#[test]
fn two_hundred_thousand_nested_arrays_are_refused_at_once() {
    let json = with_content(&format!("{}{}", "[".repeat(200_000), "]".repeat(200_000)));
    assert_eq!(refused(&json).0, "conversation-nesting");
    let padded = with_content(&format!(
        "[\"{}\",{}{}]",
        "x".repeat(3_600_000),
        "[".repeat(200_000),
        "]".repeat(200_000)
    ));
    assert!(padded.len() > 4_000_000);
    assert_eq!(refused(&padded).0, "conversation-nesting");
    let cbor = [&[0xa1, 0x61, b'a'][..], &[0x81; 200_000], &[0]].concat();
    assert_eq!(refused(&cbor).0, "conversation-nesting");
    let indefinite = [&[0xa1, 0x61, b'a'][..], &[0x9f; 200_000], &[0xff; 200_000]].concat();
    assert_eq!(refused(&indefinite).0, "conversation-nesting");
    let tags = [&[0xa1, 0x61, b'a'][..], &[0xc6; 200_000], &[0]].concat();
    assert_eq!(refused(&tags).0, "conversation-nesting");
}

#[test]
fn a_length_that_no_memory_holds_is_refused_before_anything_is_allocated() {
    for initial in [0x5b, 0x7b, 0x9b, 0xbb] {
        let mut bytes = vec![0xa1, 0x61, b'a', initial];
        bytes.extend_from_slice(&(1_u64 << 36).to_be_bytes());
        bytes.resize(110, 0);
        assert_eq!(refused(&bytes), ("conversation-cbor".to_owned(), "payload/a".to_owned()));
        // The same as a key.
        let key = [&[0xa1, initial][..], &(1_u64 << 36).to_be_bytes(), &[0; 100]].concat();
        assert_eq!(refused(&key).0, "conversation-cbor");
    }
}

#[test]
fn forty_levels_of_children_with_a_bad_leaf_are_refused_at_once() {
    let deep = |leaf: Value| (0..40).fold(leaf, |child, _| json!({ "type": "user", "children": [child] }));
    let mut record = conversation_json(0);
    record["session"]["entries"] = json!([deep(json!({ "type": "nothing" }))]);
    assert_eq!(refused(record.to_string().as_bytes()).0, "conversation-children-depth");
    assert_eq!(refused(&json_as_cbor(&record).encode()).0, "conversation-children-depth");
    let most =
        (0..32).fold(json!({ "type": "nothing" }), |child, _| json!({ "type": "user", "children": [child] }));
    record["session"]["entries"] = json!([most]);
    let (rule, place) = refused(record.to_string().as_bytes());
    assert_eq!(rule, "conversation-entry-type");
    assert!(place.starts_with(&format!("payload/session/entries/0{}", "/children/0".repeat(20))), "{place}");
}

#[test]
fn more_values_than_a_record_may_have_are_refused() {
    let zeros = |count: usize| format!("[{}0]", "0,".repeat(count));
    assert_eq!(refused(&with_content(&zeros(1 << 20))).0, "conversation-items");
    assert!(read(&with_content(&zeros(1 << 19))).is_ok());
    let cbor = [&[0xa1, 0x61, b'a', 0x9f][..], &[0; 1 << 20], &[0xff]].concat();
    assert_eq!(refused(&cbor).0, "conversation-items");
}

#[test]
fn keys_in_keys_in_keys_are_refused_at_once() {
    // {{{… {"xx…": 0}: 0, 0: 0}: 0, 0: 0}: 0}: to compare the keys of each map, what is in them was written out anew.
    let innermost = [&[0xa1, 0x7a, 0, 0x0f, 0x42, 0x40][..], &[b'x'; 1_000_000], &[0]].concat();
    let nested = (0..60).fold(innermost, |key, _| [&[0xa2][..], &key, &[0, 0, 0]].concat());
    assert_eq!(refused(&nested).0, "conversation-nesting");
}

#[test]
fn a_number_that_no_member_may_have_may_be_no_key_either() {
    let keyed = |key: &[u8]| [&[0xa1, 0x61, b'a', 0xa1][..], key, &[0]].concat();
    for key in [&[0xf9, 0x7e, 0x00][..], &[0x3b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]] {
        assert!(refused(&keyed(key)).0.starts_with("conversation-"), "{key:x?}");
    }
}

#[test]
fn many_members_entries_and_repeated_ids_are_read_in_time() {
    let names: String = (0..100_000).map(|n| format!("\"{n:07}\":0,")).collect();
    assert!(read(&with_content(&format!("{{{names}\"z\":0}}"))).is_ok());
    assert_eq!(
        refused(&with_content(&format!("{{{names}\"0000000\":0}}"))).0,
        "conversation-duplicate-member"
    );
    let mut record = conversation_json(0);
    let entry = |n: u32| json!({ "type": "tool-result", "output": "", "id": n.to_string(), "call-id": n.to_string(), "timestamp": "2026-02-30T00:00:00Z" });
    record["session"]["entries"] = (0..20_000).map(entry).collect();
    let read = read(record.to_string().as_bytes()).unwrap();
    assert_eq!((read.warnings.total(), read.warnings.listed().len()), (40_000, 16));
}

#[test]
fn a_flaw_is_named_with_its_place() {
    let mut record = conversation_json(0);
    record["session"]["entries"][1]["children"][1]["a/b~c"] = json!({ "type": "any" });
    record["session"]["entries"][1]["children"][1]["input"] = json!(0);
    record["session"]["entries"][1]["children"][1]["call-id"] = json!(7);
    let place = "payload/session/entries/1/children/1/call-id";
    for payload in [record.to_string().into_bytes(), json_as_cbor(&record).encode()] {
        assert_eq!(refused(&payload), ("conversation-type".to_owned(), place.to_owned()));
    }
    let nan = [&[0xa1, 0x63][..], b"a/b", &[0x82, 0, 0xf9, 0x7e, 0x00]].concat();
    assert_eq!(refused(&nan), ("conversation-number".to_owned(), "payload/a~1b/1".to_owned()));
}

fn changes() -> impl Strategy<Value = Vec<(usize, u8, Vec<u8>)>> {
    proptest::collection::vec((any::<usize>(), 0..4u8, proptest::collection::vec(any::<u8>(), 1..5)), 1..4)
}

fn changed(bytes: &[u8], changes: &[(usize, u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for (at, kind, new) in changes {
        let at = at % out.len();
        match kind {
            0 => out[at] = new[0],
            1 => drop(out.splice(at..at, new.iter().copied())),
            2 => drop(out.drain(at..(at + new.len()).min(out.len() - 1).max(at))),
            _ => out[at] ^= 1 << (new[0] % 8),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn changed_records_are_answered(changes in changes()) {
        let record = conversation_json(0);
        for payload in [record.to_string().into_bytes(), json_as_cbor(&record).encode()] {
            let payload = changed(&payload, &changes);
            if let Ok(record) = read(&payload) {
                record.document();
            }
        }
    }

    #[test]
    fn cbor_that_is_read_is_read_alike_by_the_other_reader(changes in changes()) {
        let payload = changed(&json_as_cbor(&conversation_json(0)).encode(), &changes);
        let limits = cbor::Limits { depth: 127, items: 1 << 20 };
        if read(&payload).is_ok() {
            prop_assert!(cbor::parse(&payload, limits).is_ok());
        }
    }
}
