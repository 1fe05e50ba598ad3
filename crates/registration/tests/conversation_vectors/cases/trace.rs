//! Trace-metadata in the unprotected header (step 8): it may repeat, and it may not say anything else.

use data_encoding::HEXLOWER;
use registration::conversation::ConversationRule as Rule;
use scitt::cbor;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use testkit::json_as_cbor;

use super::{breaks, keeps};
use crate::Case;
use crate::draft::{Draft, record, text_of, trace};

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

fn sha_512() -> Draft {
    let mut metadata = trace();
    metadata["content-hash-alg"] = json!("sha-512");
    metadata["content-hash"] = json!(HEXLOWER.encode(&Sha512::digest(text_of(&record()))));
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
            set("content-hash-alg", json!("blake3")),
        ),
        keeps(Rule::TraceContentHash, "sha-512", "the hash that is named can be computed", sha_512()),
        breaks(
            Rule::TraceContentHash,
            "sha-512-of-something-else",
            "the hash is not of the algorithm that is named",
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
        keeps(
            Rule::TraceTimestamp,
            "same-instant-otherwise",
            "a time may be written in more than one way (3.1)",
            set("timestamp-start", json!("2026-02-01T12:00:00.0Z")),
        ),
        keeps(
            Rule::TraceTimestamp,
            "same-instant-in-another-zone",
            "a time may be written in more than one way (3.1)",
            set("timestamp-start", json!("2026-02-01T13:00:00+01:00")),
        ),
        keeps(
            Rule::TraceTimestamp,
            "same-instant-in-milliseconds",
            "a time may be written as milliseconds (3.1)",
            set("timestamp-start", json!(1_769_947_200_000_u64)),
        ),
        keeps(
            Rule::TraceTimestamp,
            "same-instant-as-text",
            "a time that the record has in milliseconds may be text (3.1)",
            set("timestamp-end", json!("2026-02-01T12:01:00Z")),
        ),
        breaks(
            Rule::TraceTimestamp,
            "same-digits-in-another-zone",
            "the digits are the record's, and the time is another",
            set("timestamp-start", json!("2026-02-01T12:00:00+01:00")),
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
