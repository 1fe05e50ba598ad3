//! Parsers for the payloads of operator actions and approvals: canonical JSON without unknown members.

use jose::json;
use jose::members::quote;
use serde_json::{Map, Value};

use super::OperatorRule as Rule;
use crate::limits::{JSON_DEPTH, MAX_INTEGER};
use crate::violation::Violation;

/// Parses a payload as an object in canonical JSON.
pub(super) fn object(payload: &[u8]) -> Result<Map<String, Value>, Violation> {
    let limits = json::Limits { depth: JSON_DEPTH, ..json::Limits::default() };
    let document = json::parse_strict(payload, limits).map_err(|error| {
        let detail = format!("{} at byte {} of the JSON", error.kind, error.offset);
        Rule::Json.in_payload(error.pointer.clone(), detail)
    })?;
    if jose::jcs::canonical(&document) != payload {
        return Err(Rule::Canonical.in_payload("", "the JSON is not in its canonical form (RFC 8785)"));
    }
    match document {
        Value::Object(members) => Ok(members),
        _ => Err(Rule::Json.in_payload("", "the payload is not an object")),
    }
}

/// Rejects members that are not in `known`.
pub(super) fn close(members: &Map<String, Value>, known: &[&str]) -> Result<(), Violation> {
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(Rule::Member.in_payload("", format!("{} is not known here", quote(name)))),
        None => Ok(()),
    }
}

pub(super) fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<&'a str, Violation> {
    let text = members.get(name).and_then(Value::as_str);
    text.ok_or_else(|| Rule::Member.in_payload(format!("/{name}"), "a string is needed here"))
}

/// Parses a required integer from 0 to [`MAX_INTEGER`].
pub(super) fn number(members: &Map<String, Value>, name: &str, rule: Rule) -> Result<u64, Violation> {
    let value = members.get(name);
    let value =
        value.ok_or_else(|| Rule::Member.in_payload(format!("/{name}"), "this member is required"))?;
    value
        .as_u64()
        .filter(|number| *number <= MAX_INTEGER)
        .ok_or_else(|| rule.in_payload(format!("/{name}"), "an integer from 0 to 2^53-1 is needed here"))
}

/// Parses 32 bytes in lower-case hexadecimal.
pub(super) fn digest(members: &Map<String, Value>, name: &str, rule: Rule) -> Result<[u8; 32], Violation> {
    let bytes = data_encoding::HEXLOWER.decode(text(members, name)?.as_bytes()).ok();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| rule.in_payload(format!("/{name}"), "64 lower-case hex digits are needed here"))
}
