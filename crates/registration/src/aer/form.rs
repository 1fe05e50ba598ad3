//! Parser from the payload's bytes to a JSON value: strict, canonical, and limited to the size of a receipt.

use jose::json::{self, JsonError, JsonErrorKind};
use serde_json::Value;

use super::rule::AerRule;
use crate::limits::{MAX_AER_BYTES, MAX_AER_DEPTH};
use crate::violation::Violation;

/// Parses canonical JSON of at most [`MAX_AER_BYTES`] bytes.
pub(super) fn canonical_json(text: &[u8]) -> Result<Value, Violation> {
    if text.len() > MAX_AER_BYTES {
        let detail = format!("{} bytes, a receipt takes at most {MAX_AER_BYTES}", text.len());
        return Err(AerRule::Size.in_payload("", detail));
    }
    let limits = json::Limits { bytes: MAX_AER_BYTES, depth: MAX_AER_DEPTH };
    let value = json::parse_strict(text, limits).map_err(|error| not_json(&error))?;
    match jose::jcs::canonical(&value) == text {
        true => Ok(value),
        false => Err(AerRule::Canonical.in_payload("", "the JSON is not in its canonical form (RFC 8785)")),
    }
}

/// Returns the content that the inner signatures sign: the canonical form without `signatures`.
pub(super) fn signed_content(receipt: &Value) -> Vec<u8> {
    let mut content = receipt.clone();
    if let Value::Object(members) = &mut content {
        members.remove("signatures");
    }
    jose::jcs::canonical(&content)
}

/// Maps a JSON error to the rule that it breaks.
fn not_json(error: &JsonError) -> Violation {
    let rule = match error.kind {
        JsonErrorKind::Duplicate(_) => AerRule::DuplicateMember,
        JsonErrorKind::LoneSurrogate => AerRule::LoneSurrogate,
        JsonErrorKind::NumberRange => AerRule::Count,
        _ => AerRule::Json,
    };
    rule.in_payload(error.pointer.clone(), format!("{} at byte {} of the JSON", error.kind, error.offset))
}
