//! `aiInvocation` (SEP-2817): the client's statement about the model, the user and the turn of a call. Stored for audit
//! only (readings X-6, S-1 to S-4).
//!
//! It is split off before any decision, so that it cannot influence one. [`AiInvocation`] exposes only its `turnId`.
//! The writer of the audit annex alone reads the rest and records it as asserted by the client, not as a fact. A
//! malformed value is recorded as malformed and changes nothing else.

use jose::json::{self, Limits};
use serde_json::{Map, Value, json};

use crate::limits::{MAX_INVOCATION, MAX_INVOCATION_TEXT, MAX_TURN_ID};
use vap::digest::Digest;

/// The keys in `_meta` for an `aiInvocation`: the proposal's and our own.
pub const KEYS: [&str; 2] = ["io.modelcontextprotocol/aiInvocation", "dev.tabellion/aiInvocation"];

/// Maximum nesting of an `aiInvocation`.
const MAX_DEPTH: usize = 8;

/// A client's statement about the model, the user and the turn of a call.
#[derive(Clone, PartialEq)]
pub struct AiInvocation {
    turn_id: Option<String>,
    assertion: Value,
}

impl AiInvocation {
    /// Parses the text under one of the [`KEYS`]. Never fails: an invalid text is kept as a digest, marked as
    /// malformed.
    pub fn read(text: &str) -> AiInvocation {
        let limits = Limits { bytes: MAX_INVOCATION, depth: MAX_DEPTH };
        let read = match json::parse_strict(text.as_bytes(), limits) {
            Ok(Value::Object(members)) => Some(members),
            _ => None,
        };
        let turn_id = read.as_ref().and_then(|members| turn_id(members.get("turnId")?));
        let assertion = match read.as_ref().and_then(known) {
            Some(known) => json!({ "asserted_by_client": known }),
            None => json!({ "malformed": true, "digest": Digest::of(text.as_bytes()).as_str() }),
        };
        AiInvocation { turn_id, assertion }
    }

    /// Returns the client's `turnId`, if it is valid (see [`MAX_TURN_ID`]). Only this member is ever echoed. The client
    /// chooses it, so it must not be a key of a cache, of a replay check or of a policy (reading S-3).
    pub fn turn_id(&self) -> Option<&str> {
        self.turn_id.as_deref()
    }

    /// Returns the object to echo on a result, exactly `{"turnId":…}`, or `None` without a `turnId` (reading S-2).
    pub fn echo(&self) -> Option<String> {
        self.turn_id.as_ref().map(|turn_id| json!({ "turnId": turn_id }).to_string())
    }

    /// Returns the JSON for the audit annex: `asserted_by_client`, or `malformed` with a digest.
    #[must_use]
    pub fn assertion(&self) -> &Value {
        &self.assertion
    }
}

/// Shows only the `turnId`; the rest is untrusted and may be personal data.
impl std::fmt::Debug for AiInvocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AiInvocation").field("turn_id", &self.turn_id).finish_non_exhaustive()
    }
}

/// Returns the text if it has 1 to [`MAX_TURN_ID`] bytes and no control characters.
fn turn_id(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let sane = (1..=MAX_TURN_ID).contains(&text.len()) && !text.chars().any(char::is_control);
    sane.then(|| text.to_owned())
}

/// Keeps the members that SEP-2817 names. Returns `None` if one has another type than in the proposal's examples.
fn known(members: &Map<String, Value>) -> Option<Value> {
    let mut known = Map::new();
    for (name, shape) in [
        ("invocationReason", &[("kind", Kind::Text), ("text", Kind::Text)][..]),
        ("model", &[("name", Kind::Text), ("provider", Kind::Text), ("version", Kind::Text)]),
        ("userIntent", &[("text", Kind::Text), ("hash", Kind::Text), ("redacted", Kind::Switch)]),
    ] {
        if let Some(value) = members.get(name) {
            known.insert(name.to_owned(), part(value.as_object()?, shape)?);
        }
    }
    if let Some(value) = members.get("turnId") {
        known.insert("turnId".to_owned(), turn_id(value)?.into());
    }
    withhold(&mut known);
    Some(Value::Object(known))
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Switch,
}

fn part(members: &Map<String, Value>, shape: &[(&str, Kind)]) -> Option<Value> {
    let mut part = Map::new();
    for (name, kind) in shape {
        let Some(value) = members.get(*name) else { continue };
        let kept = match kind {
            Kind::Text => capped(value.as_str()?),
            Kind::Switch => Value::Bool(value.as_bool()?),
        };
        part.insert((*name).to_owned(), kept);
    }
    Some(Value::Object(part))
}

/// Returns the text, or its first [`MAX_INVOCATION_TEXT`] bytes and a digest of the whole if it is longer.
fn capped(text: &str) -> Value {
    if text.len() <= MAX_INVOCATION_TEXT {
        return text.into();
    }
    let end = (0..=MAX_INVOCATION_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    json!({ "beginning": text[..end], "digest": Digest::of(text.as_bytes()).as_str() })
}

/// Marks a `userIntent` that is redacted and has no `text` as `withheld` (reading S-4).
fn withhold(known: &mut Map<String, Value>) {
    let Some(Value::Object(intent)) = known.get_mut("userIntent") else { return };
    if intent.get("redacted") == Some(&Value::Bool(true)) && !intent.contains_key("text") {
        intent.insert("withheld".to_owned(), true.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assertion(value: &Value) -> Value {
        AiInvocation::read(&value.to_string()).assertion().clone()
    }

    #[test]
    fn s_4_it_is_kept_as_asserted_by_the_client() {
        let asserted = json!({
            "invocationReason": { "kind": "user", "text": "the user asked" },
            "model": { "name": "m", "version": "1" },
            "userIntent": { "text": "secret wish", "hash": "sha256:00", "redacted": false },
            "turnId": "turn-7",
        });
        let mut with_more = asserted.clone();
        with_more["unheard_of"] = json!({ "kept": false });
        assert_eq!(assertion(&with_more), json!({ "asserted_by_client": asserted }));
    }

    #[test]
    fn s_4_what_is_redacted_is_kept_as_withheld() {
        let redacted = json!({ "userIntent": { "redacted": true, "hash": "sha256:00" } });
        let kept = json!({ "userIntent": { "redacted": true, "hash": "sha256:00", "withheld": true } });
        assert_eq!(assertion(&redacted), json!({ "asserted_by_client": kept }));
        let has_text = json!({ "userIntent": { "redacted": true, "text": "w" } });
        assert_eq!(assertion(&has_text), json!({ "asserted_by_client": has_text }));
    }

    #[test]
    fn s_1_what_is_malformed_is_kept_as_malformed() {
        for text in [
            "",
            "[]",
            r#"{"model":[]}"#,
            r#"{"model":{"name":1}}"#,
            r#"{"userIntent":{"redacted":"yes"}}"#,
            r#"{"turnId":7}"#,
            r#"{"model":{},"model":{}}"#,
            &format!(r#"{{"more":"{}"}}"#, "x".repeat(MAX_INVOCATION)),
        ] {
            let kept = json!({ "malformed": true, "digest": Digest::of(text.as_bytes()).as_str() });
            assert_eq!(*AiInvocation::read(text).assertion(), kept, "{text:.40}");
        }
    }

    #[test]
    fn s_1_a_long_text_is_kept_as_its_beginning_and_its_digest() {
        let long = "é".repeat(MAX_INVOCATION_TEXT / 2) + "x";
        let cut = "é".repeat(MAX_INVOCATION_TEXT / 2);
        let kept = json!({ "beginning": cut, "digest": Digest::of(long.as_bytes()).as_str() });
        let asserted = json!({ "invocationReason": { "text": long } });
        assert_eq!(assertion(&asserted)["asserted_by_client"]["invocationReason"]["text"], kept);
        let across = format!("x{}", "é".repeat(MAX_INVOCATION_TEXT / 2));
        let asserted = json!({ "invocationReason": { "text": across } });
        let kept =
            assertion(&asserted)["asserted_by_client"]["invocationReason"]["text"]["beginning"].clone();
        assert_eq!(kept.as_str().unwrap().len(), MAX_INVOCATION_TEXT - 1, "never through a character");
    }
}
