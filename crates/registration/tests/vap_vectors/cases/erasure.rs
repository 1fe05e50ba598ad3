//! Erasures.

use merkle::EntryDigest;
use registration::Policy;
use registration::erasure::{ERASURE_CONTENT_TYPE, ErasureRule as R};
use scitt::{SignedStatement, StatementBuilder};
use serde_json::{Value, json};
use testkit::{LOG_ISS, ORIGIN, operator};

use super::{breaks, canonical, keeps, statement, text_with, with, without};
use crate::Case;

/// An operator's statement with exactly this payload.
fn builder(payload: impl Into<Vec<u8>>) -> StatementBuilder {
    let kid = testkit::policy().contents().operators[0].kid.clone();
    StatementBuilder::new(payload).content_type(ERASURE_CONTENT_TYPE).kid(kid).iss(LOG_ISS).sub(ORIGIN)
}

fn sign(payload: impl Into<Vec<u8>>) -> Vec<u8> {
    builder(payload).encode(&operator()).unwrap()
}

fn erase(erasure: &Value) -> Vec<u8> {
    sign(canonical(erasure))
}

fn note(n: u8) -> Vec<u8> {
    statement("text/plain", "note", format!("note {n}"))
}

fn id(statement: &[u8]) -> String {
    EntryDigest::of(statement).to_string()
}

/// The erasure of a note that the log holds.
fn erasure(sequence: u64) -> Value {
    json!({ "sequence": sequence, "entries": [id(&note(0))], "reason": "asked to", "rule": "request" })
}

fn erase_with(pointer: &str, value: Value) -> Vec<u8> {
    erase(&with(erasure(0), pointer, value))
}

/// The policy after the one in force.
fn next_policy() -> Vec<u8> {
    let text = testkit::policy_toml().replace("revision = 0", "revision = 1");
    let policy = Policy::from_toml(&text).unwrap();
    let signed = registration::policy::statement::sign(&policy, &testkit::policy(), &operator()).unwrap();
    signed.bytes().to_vec()
}

pub fn cases() -> Vec<Case> {
    let log = vec![note(0), note(1)];
    let on_log = |case: Case| if case.log.is_empty() { case.log(log.clone()) } else { case };
    [payload_cases(), entry_cases(), statement_cases(), log_cases()]
        .concat()
        .into_iter()
        .map(on_log)
        .collect()
}

fn payload_cases() -> Vec<Case> {
    let full = with(with(erasure(0), "/at", json!("2026-01-01T00:00:00Z")), "/authorized_by", json!("DPO"));
    let duplicate = text_with(&erasure(0), "\"rule\"", "\"rule\":\"x\",\"rule\"");
    let mut cases = vec![
        keeps(R::Json, "object", "One JSON object.", erase(&erasure(0))),
        breaks(R::Json, "array", "An erasure is an object.", sign(b"[]".to_vec())),
        breaks(R::Json, "duplicate", "One reader sees one rule, another the other.", sign(duplicate)),
        keeps(R::Canonical, "canonical", "Names in order, nothing between.", erase(&erasure(0))),
        breaks(
            R::Canonical,
            "blank",
            "A blank that JCS does not write.",
            sign(text_with(&erasure(0), ":", ": ")),
        ),
        keeps(R::Member, "full", "Everything that may be said.", erase(&full)),
        breaks(R::Member, "unknown", "A member that nobody knows.", erase_with("/case", json!("7"))),
        breaks(R::Member, "entries-text", "A list is needed.", erase_with("/entries", json!(id(&note(0))))),
        breaks(R::Member, "at-number", "A time is text.", erase_with("/at", json!(0))),
        keeps(R::Sequence, "zero", "The first erasure.", erase(&erasure(0))),
        breaks(R::Sequence, "negative", "Erasures count from 0.", erase_with("/sequence", json!(-1))),
        breaks(R::Sequence, "text", "A number as text.", erase_with("/sequence", json!("0"))),
        keeps(R::Reason, "long", "1000 characters.", erase_with("/reason", json!("é".repeat(1000)))),
        breaks(R::Reason, "too-long", "1001 characters.", erase_with("/reason", json!("é".repeat(1001)))),
        breaks(R::Reason, "empty", "Nothing is erased without a reason.", erase_with("/reason", json!(""))),
        breaks(R::Reason, "nobody", "Authorized by nobody.", erase_with("/authorized_by", json!(""))),
        keeps(
            R::Rule,
            "retention",
            "The retention of a content type.",
            erase_with("/rule", json!("retention")),
        ),
        breaks(R::Rule, "words", "A code has no blanks.", erase_with("/rule", json!("by request"))),
        breaks(R::Rule, "empty", "No code at all.", erase_with("/rule", json!(""))),
        keeps(R::At, "utc", "A time in UTC.", erase(&full)),
        breaks(R::At, "offset", "UTC is written Z.", erase_with("/at", json!("2026-01-01T00:00:00+00:00"))),
        breaks(R::At, "never", "A day that never was.", erase_with("/at", json!("2026-02-30T00:00:00Z"))),
    ];
    for name in ["sequence", "entries", "reason", "rule"] {
        let statement = erase(&without(erasure(0), &format!("/{name}")));
        cases.push(breaks(R::Member, &format!("no-{name}"), "This member is required.", statement));
    }
    cases
}

fn entry_cases() -> Vec<Case> {
    let mut both = [id(&note(0)), id(&note(1))];
    both.sort();
    let [low, high] = both;
    let thousand = |n: u64| {
        let mut ids: Vec<String> = (0..n).map(|i| EntryDigest::of(&i.to_be_bytes()).to_string()).collect();
        ids.sort();
        json!(ids)
    };
    let upper = id(&note(0)).to_uppercase();
    vec![
        keeps(R::Entries, "two", "Two entries, in order.", erase_with("/entries", json!([low, high]))),
        breaks(
            R::Entries,
            "out-of-order",
            "Two entries, out of order.",
            erase_with("/entries", json!([high, low])),
        ),
        breaks(R::Entries, "twice", "One entry, twice.", erase_with("/entries", json!([low, low]))),
        breaks(R::Entries, "none", "An erasure of nothing.", erase_with("/entries", json!([]))),
        breaks(R::Entries, "too-many", "1001 entries.", erase_with("/entries", thousand(1001))),
        breaks(R::Entries, "upper-case", "Entry IDs are lower case.", erase_with("/entries", json!([upper]))),
        breaks(R::Entries, "number", "An entry is named by its ID.", erase_with("/entries", json!([1]))),
        keeps(R::Known, "there", "The entry is in the log.", erase(&erasure(0))),
        breaks(
            R::Known,
            "not-there",
            "Entries that are not in the log.",
            erase_with("/entries", thousand(1000)),
        ),
    ]
}

fn statement_cases() -> Vec<Case> {
    let payload = canonical(&erasure(0));
    let other_log = builder(payload.clone()).sub("other.example").encode(&operator()).unwrap();
    vec![
        keeps(R::Subject, "origin", "The subject is the log's origin.", erase(&erasure(0))),
        breaks(R::Subject, "other-log", "The erasure of another log.", other_log),
    ]
}

fn log_cases() -> Vec<Case> {
    let first = erase(&with(erasure(0), "/entries", json!([id(&note(1))])));
    let of_policy = erase_with("/entries", json!([id(&next_policy())]));
    let of_erasure = erase(&with(erasure(1), "/entries", json!([id(&first)])));
    assert!(SignedStatement::parse(first.clone()).is_ok());
    vec![
        keeps(R::Permanent, "note", "A note may go.", erase(&erasure(0))),
        breaks(R::Permanent, "policy", "A policy stays.", of_policy).log(vec![note(0), next_policy()]),
        breaks(R::Permanent, "erasure", "An erasure stays.", of_erasure).log(vec![note(1), first.clone()]),
        keeps(R::Predecessor, "second", "The second after the first.", erase(&erasure(1))).log(vec![
            note(0),
            note(1),
            first.clone(),
        ]),
        breaks(R::Predecessor, "gap", "The second without the first.", erase(&erasure(1))),
        keeps(R::SequenceUnique, "first", "The first of its number.", erase(&erasure(0))),
        breaks(R::SequenceUnique, "second", "A second of the same number.", erase(&erasure(0))).log(vec![
            note(0),
            note(1),
            first,
        ]),
    ]
}
