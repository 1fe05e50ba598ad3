//! The CDDL, map by map (steps 6 and 7).

use registration::conversation::ConversationRule as Rule;
use serde_json::{Value, json};
use testkit::conversation_json;

use super::{breaks, keeps};
use crate::Case;
use crate::draft::{Draft, record, with_entries, with_file};

/// The record with a value set at a pointer.
fn set(pointer: &str, value: Value) -> Draft {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let mut record = record();
    record.pointer_mut(parent).unwrap()[name] = value;
    Draft::json(&record)
}

fn remove(pointer: &str) -> Draft {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let mut record = record();
    let members = record.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    members.remove(name).unwrap_or_else(|| panic!("{pointer}"));
    Draft::json(&record)
}

fn entry(entry: Value) -> Draft {
    Draft::json(&with_entries(json!([entry])))
}

pub fn members() -> Vec<Case> {
    let usage = |usage: Value| entry(json!({ "type": "assistant", "token-usage": usage }));
    let long = |version: &str| set("/version", json!(version));
    vec![
        keeps(
            Rule::Member,
            "all-members",
            "every map of the document, full",
            Draft::json(&conversation_json(2)),
        ),
        keeps(
            Rule::Member,
            "unknown-members",
            "open maps may hold anything beside",
            set("/native", json!({ "a": [1, null] })),
        ),
        breaks(Rule::Member, "no-version", "version is required", remove("/version")),
        breaks(Rule::Member, "no-id", "id is required", remove("/id")),
        breaks(Rule::Member, "no-session", "session is required", remove("/session")),
        breaks(Rule::Member, "no-session-id", "session-id is required", remove("/session/session-id")),
        breaks(Rule::Member, "no-agent-meta", "agent-meta is required", remove("/session/agent-meta")),
        breaks(Rule::Member, "no-model-id", "model-id is required", remove("/session/agent-meta/model-id")),
        breaks(
            Rule::Member,
            "no-model-provider",
            "model-provider is required",
            remove("/session/agent-meta/model-provider"),
        ),
        breaks(Rule::Member, "no-entries", "entries is required", remove("/session/entries")),
        breaks(Rule::Member, "no-entry-type", "an entry has a type", entry(json!({ "content": "hi" }))),
        breaks(
            Rule::Member,
            "call-without-name",
            "a call names its tool",
            entry(json!({ "type": "tool-call", "input": {} })),
        ),
        breaks(
            Rule::Member,
            "call-without-input",
            "a call has an input",
            entry(json!({ "type": "tool-call", "name": "Bash" })),
        ),
        breaks(
            Rule::Member,
            "result-without-output",
            "a result has an output",
            entry(json!({ "type": "tool-result" })),
        ),
        breaks(
            Rule::Member,
            "reasoning-without-content",
            "reasoning has content",
            entry(json!({ "type": "reasoning" })),
        ),
        breaks(
            Rule::Member,
            "event-without-type",
            "an event has an event-type",
            entry(json!({ "type": "system-event" })),
        ),
        breaks(
            Rule::Member,
            "environment-without-directory",
            "an environment has a working-dir",
            set("/session/environment", json!({})),
        ),
        breaks(
            Rule::Member,
            "recorder-without-name",
            "a recording-agent has a name",
            set("/recording-agent", json!({ "version": "1" })),
        ),
        breaks(
            Rule::Member,
            "vcs-without-type",
            "a vcs has a type",
            set("/vcs", json!({ "branch": "main" })),
        ),
        breaks(
            Rule::Member,
            "file-without-conversations",
            "a file has conversations",
            Draft::json(&with_file(json!({ "path": "a" }))),
        ),
        keeps(
            Rule::Type,
            "cost-is-any-number",
            "a cost may be negative, and an integer",
            usage(json!({ "input": 0, "cost": -1 })),
        ),
        keeps(
            Rule::Type,
            "content-of-any-type",
            "content may be anything",
            entry(json!({ "type": "assistant", "content": null })),
        ),
        breaks(Rule::Type, "version-a-number", "version is text", set("/version", json!(3))),
        breaks(
            Rule::Type,
            "null-is-no-absence",
            "an optional member that is there has its type",
            set("/session/format", json!(null)),
        ),
        breaks(Rule::Type, "session-an-array", "a session is a map", set("/session", json!([]))),
        breaks(Rule::Type, "entries-a-map", "entries is an array", set("/session/entries", json!({}))),
        breaks(Rule::Type, "entry-a-string", "an entry is a map", entry(json!("hi"))),
        breaks(
            Rule::Type,
            "children-a-map",
            "children is an array",
            entry(json!({ "type": "user", "children": {} })),
        ),
        breaks(
            Rule::Type,
            "models-of-numbers",
            "models are texts",
            set("/session/agent-meta/models", json!([1])),
        ),
        breaks(Rule::Type, "negative-tokens", "tokens are counted from 0", usage(json!({ "input": -1 }))),
        breaks(
            Rule::Type,
            "tokens-with-a-point",
            "1.0 is no integer",
            Draft::text(
                "\"content\":\"hi\",\"id\":\"e1\",\"type\":\"user\"",
                "\"token-usage\":{\"output\":1.0},\"type\":\"user\"",
            ),
        ),
        breaks(Rule::Type, "cost-as-text", "a cost is a number", usage(json!({ "cost": "1" }))),
        breaks(
            Rule::Type,
            "is-error-a-number",
            "is-error is a boolean",
            entry(json!({ "type": "tool-result", "output": "", "is-error": 0 })),
        ),
        breaks(
            Rule::Type,
            "data-an-array",
            "data is a map",
            entry(json!({ "type": "system-event", "event-type": "x", "data": [] })),
        ),
        breaks(
            Rule::Type,
            "negative-line",
            "lines are counted",
            Draft::json(&with_file(
                json!({ "path": "a", "conversations": [{ "ranges": [{ "start-line": -1, "end-line": 1 }] }] }),
            )),
        ),
        breaks(
            Rule::Type,
            "tagged-text",
            "a tag makes another type of a text",
            Draft::cbor_with(&[&[0x67][..], b"created", &[0xc0, 0x74], b"2026-02-01T12:00:00Z"].concat()),
        ),
        keeps(
            Rule::MemberName,
            "integer-keys-elsewhere",
            "what is any may have keys of any type",
            Draft::cbor_with(&[0x61, b'x', 0xa1, 0x01, 0x02]),
        ),
        breaks(
            Rule::MemberName,
            "integer-key",
            "members of a record have names",
            Draft::cbor_with(&[0x01, 0x02]),
        ),
        keeps(Rule::SessionId, "byte-string", "a byte string in CBOR", Draft::of(bytes_as_session_id())),
        breaks(Rule::SessionId, "number", "a number is neither", set("/session/session-id", json!(7))),
        keeps(Rule::Version, "3.1", "a later version of 3", long("3.1.0")),
        keeps(Rule::Version, "policy-takes-4", "a version that the policy takes", long("4.0.0"))
            .under(json!({ "versions": ["3.", "4."] })),
        breaks(Rule::Version, "4", "an unknown version", long("4.0.0")),
        breaks(Rule::Version, "30", "30 is not 3.something", long("30.0")),
        breaks(Rule::Version, "empty", "no version", long("")),
    ]
}

/// The record in CBOR, its session-id the byte string 00 01.
fn bytes_as_session_id() -> Vec<u8> {
    let bytes = testkit::json_as_cbor(&record()).encode();
    let name = b"session-id";
    let at = bytes.windows(name.len()).position(|part| part == name).unwrap() + name.len();
    [&bytes[..at], &[0x42, 0, 1], &bytes[at + 2..]].concat()
}

pub fn entries() -> Vec<Case> {
    let of = |kind: Value| {
        entry(json!({ "type": kind, "content": "", "name": "", "input": 0, "output": 0, "event-type": "" }))
    };
    let contributor = |kind: &str| {
        let range = json!({ "start-line": 1, "end-line": 1, "contributor": { "type": kind } });
        Draft::json(&with_file(json!({ "path": "a", "conversations": [{ "ranges": [range] }] })))
    };
    vec![
        keeps(Rule::EntryType, "user", "one of six", of(json!("user"))),
        keeps(Rule::EntryType, "assistant", "one of six", of(json!("assistant"))),
        keeps(Rule::EntryType, "tool-call", "one of six", of(json!("tool-call"))),
        keeps(Rule::EntryType, "tool-result", "one of six", of(json!("tool-result"))),
        keeps(Rule::EntryType, "reasoning", "one of six", of(json!("reasoning"))),
        keeps(Rule::EntryType, "system-event", "one of six", of(json!("system-event"))),
        breaks(Rule::EntryType, "unknown", "the list is closed", of(json!("thinking"))),
        breaks(Rule::EntryType, "other-case", "types are spelled in lower case", of(json!("User"))),
        breaks(Rule::EntryType, "not-text", "a type is text", of(json!(1))),
        breaks(
            Rule::EntryType,
            "in-children",
            "children are entries",
            entry(json!({ "type": "user", "children": [{ "type": "x" }] })),
        ),
        keeps(Rule::ContributorType, "mixed", "one of four", contributor("mixed")),
        breaks(Rule::ContributorType, "robot", "none of four", contributor("robot")),
    ]
}

pub fn times() -> Vec<Case> {
    let start = |value: Value| set("/session/session-start", value);
    vec![
        keeps(
            Rule::Timestamp,
            "offset",
            "a time with an offset",
            start(json!("2026-02-01T13:00:00.123456789+01:00")),
        ),
        keeps(
            Rule::Timestamp,
            "day-that-never-was",
            "the pattern admits 30 February: a warning",
            start(json!("2026-02-30T12:00:00Z")),
        ),
        keeps(
            Rule::Timestamp,
            "second-60",
            "the pattern admits the second 60: a warning",
            start(json!("2026-02-01T12:00:60Z")),
        ),
        breaks(Rule::Timestamp, "date-alone", "a date is no time", start(json!("2026-02-01"))),
        breaks(Rule::Timestamp, "no-offset", "a time without an offset", start(json!("2026-02-01T12:00:00"))),
        breaks(
            Rule::Timestamp,
            "lower-case",
            "the pattern has T and Z",
            start(json!("2026-02-01t12:00:00z")),
        ),
        breaks(
            Rule::Timestamp,
            "month-13",
            "there are twelve",
            set("/created", json!("2026-13-01T12:00:00Z")),
        ),
        breaks(
            Rule::Timestamp,
            "in-an-entry",
            "entries have times, too",
            entry(json!({ "type": "user", "timestamp": "noon" })),
        ),
        keeps(
            Rule::EpochMilliseconds,
            "milliseconds",
            "2026, in milliseconds",
            start(json!(1_769_947_200_000_u64)),
        ),
        keeps(Rule::EpochMilliseconds, "least", "10^11: 3 March 1973", start(json!(100_000_000_000_u64))),
        breaks(Rule::EpochMilliseconds, "seconds", "2026, in seconds", start(json!(1_769_947_200_u64))),
        breaks(Rule::EpochMilliseconds, "zero", "a time that nobody set", set("/created", json!(0))),
    ]
}

pub fn closed_maps() -> Vec<Case> {
    let range = json!({ "start-line": 1, "end-line": 2 });
    let full = json!({ "path": "src/lib.rs", "conversations": [{
        "url": "", "contributor": { "type": "ai", "model-id": "m" }, "ranges": [range], "related": [{ "type": "issue", "url": "javascript:" }]
    }] });
    let with = |pointer: &str| {
        let mut record = with_file(full.clone());
        record.pointer_mut(pointer).unwrap()["x"] = json!(1);
        Draft::json(&record)
    };
    vec![
        keeps(
            Rule::ClosedMap,
            "full",
            "every member of the closed maps",
            Draft::json(&with_file(full.clone())),
        ),
        breaks(
            Rule::ClosedMap,
            "file-attribution",
            "a member that the CDDL does not name",
            with("/file-attribution"),
        ),
        breaks(
            Rule::ClosedMap,
            "file",
            "a member that the CDDL does not name",
            with("/file-attribution/files/0"),
        ),
        breaks(
            Rule::ClosedMap,
            "conversation",
            "a member that the CDDL does not name",
            with("/file-attribution/files/0/conversations/0"),
        ),
        breaks(
            Rule::ClosedMap,
            "range",
            "a member that the CDDL does not name",
            with("/file-attribution/files/0/conversations/0/ranges/0"),
        ),
        breaks(
            Rule::ClosedMap,
            "contributor",
            "a member that the CDDL does not name",
            with("/file-attribution/files/0/conversations/0/contributor"),
        ),
        breaks(
            Rule::ClosedMap,
            "resource",
            "a member that the CDDL does not name",
            with("/file-attribution/files/0/conversations/0/related/0"),
        ),
    ]
}
