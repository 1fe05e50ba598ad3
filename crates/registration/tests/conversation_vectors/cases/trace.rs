//! Trace-metadata in the unprotected header (step 8): it may repeat, and it may not say anything else.

use registration::conversation::ConversationRule as Rule;
use scitt::cbor;
use serde_json::{Value, json};
use testkit::json_as_cbor;

use super::{breaks, keeps};
use crate::Case;
use crate::draft::{Draft, record, trace};

fn set(name: &str, value: Value) -> Draft {
    let mut metadata = trace();
    metadata[name] = value;
    Draft::trace(&metadata)
}

fn remove(name: &str) -> Draft {
    let mut metadata = trace();
    metadata.as_object_mut().unwrap().remove(name).unwrap();
    Draft::trace(&metadata)
}

/// The record without its times, and the metadata with them.
fn timeless() -> Draft {
    let mut record = record();
    let session = record["session"].as_object_mut().unwrap();
    session.retain(|name, _| !name.starts_with("session-start") && !name.starts_with("session-end"));
    let mut metadata = trace();
    metadata.as_object_mut().unwrap().remove("content-hash");
    Draft::json(&record).unprotected(100, json_as_cbor(&metadata))
}

pub fn cases() -> Vec<Case> {
    let upper = trace()["content-hash"].as_str().unwrap().to_uppercase();
    let elsewhere =
        |label| Draft::json(&record()).unprotected(label, json_as_cbor(&json!({ "session-id": "other" })));
    vec![
        keeps(
            Rule::TraceMetadata,
            "repeats-the-record",
            "every member says what the record says",
            Draft::trace(&trace()),
        ),
        keeps(Rule::TraceMetadata, "absent", "there need be none", Draft::json(&record())),
        keeps(Rule::TraceMetadata, "another-label", "what stands elsewhere is not looked at", elsewhere(101)),
        breaks(Rule::TraceMetadata, "policy-s-label", "the policy says where it stands", elsewhere(101))
            .under(json!({ "trace_metadata_label": 101 })),
        breaks(Rule::TraceMetadata, "no-vendor", "agent-vendor is required", remove("agent-vendor")),
        breaks(
            Rule::TraceMetadata,
            "not-a-map",
            "it is a map",
            Draft::json(&record()).unprotected(100, cbor::Value::Null),
        ),
        breaks(
            Rule::TraceMetadata,
            "time-of-another-form",
            "a time has the form of RFC 3339",
            set("timestamp-start", json!("noon")),
        ),
        breaks(Rule::ClosedMap, "trace-metadata", "a member that the CDDL does not name", set("x", json!(1))),
        keeps(
            Rule::TraceFormat,
            "of-its-own",
            "the list of formats is open",
            set("trace-format", json!("our-own-v1")),
        ),
        breaks(
            Rule::TraceFormat,
            "native",
            "what is signed is a record and no native log",
            set("trace-format", json!("claude-jsonl")),
        ),
        keeps(Rule::TraceContentHash, "upper-case", "upper case is read", set("content-hash", json!(upper))),
        keeps(
            Rule::TraceContentHash,
            "no-algorithm",
            "SHA-256 where none is named",
            remove("content-hash-alg"),
        ),
        breaks(
            Rule::TraceContentHash,
            "of-something-else",
            "the hash of other bytes",
            set("content-hash", json!("00".repeat(32))),
        ),
        breaks(
            Rule::TraceContentHash,
            "with-prefix",
            "hex digits and nothing else",
            set("content-hash", json!(format!("sha256:{upper}"))),
        ),
        breaks(Rule::TraceContentHash, "cut-short", "64 digits", set("content-hash", json!(upper[..62]))),
        breaks(
            Rule::TraceContentHash,
            "another-algorithm",
            "what cannot be checked could be wrong",
            set("content-hash-alg", json!("sha-512")),
        ),
        keeps(Rule::TraceSessionId, "same", "the record's session", Draft::trace(&trace())),
        breaks(
            Rule::TraceSessionId,
            "another-session",
            "a record shown under another session",
            set("session-id", json!("t")),
        ),
        breaks(
            Rule::TraceSessionId,
            "same-bytes",
            "a byte string is not the text of the same bytes",
            Draft::json(&record()).unprotected(100, bytes_as_session_id()),
        ),
        keeps(Rule::TraceAgentVendor, "same", "the record's model-provider", Draft::trace(&trace())),
        breaks(
            Rule::TraceAgentVendor,
            "another-vendor",
            "a record shown under another vendor",
            set("agent-vendor", json!("q")),
        ),
        keeps(Rule::TraceTimestamp, "record-has-none", "nothing to compare with", timeless()),
        breaks(
            Rule::TraceTimestamp,
            "another-start",
            "a record shown under another day",
            set("timestamp-start", json!("2026-02-02T12:00:00Z")),
        ),
        breaks(
            Rule::TraceTimestamp,
            "same-instant-otherwise",
            "it repeats the value, not its meaning",
            set("timestamp-start", json!("2026-02-01T12:00:00.0Z")),
        ),
        breaks(
            Rule::TraceTimestamp,
            "another-end",
            "the end, too",
            set("timestamp-end", json!(1_769_947_260_001_u64)),
        ),
    ]
}

fn bytes_as_session_id() -> cbor::Value<'static> {
    let cbor::Value::Map(mut entries) = json_as_cbor(&trace()) else { panic!("a map") };
    for (name, value) in &mut entries {
        if name.value == "session-id".into() {
            value.value = b"s".to_vec().into();
        }
    }
    cbor::Value::Map(entries)
}
