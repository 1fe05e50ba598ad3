//! The JSON Canonicalization Scheme, RFC 8785.
//!
//! JCS writes every number as a double, so two integers beyond 2^53 may get the same canonical form. A profile that
//! signs or hashes canonical JSON has to refuse such numbers first (see [`number`](crate::number)).

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, CheckedJson, Limits};

/// Returns the canonical form of a value.
pub fn canonical(value: &Value) -> Vec<u8> {
    to_canonical(value).expect("a JSON value has text for names and no NaN")
}

/// Returns the canonical form of a type's JSON.
///
/// # Errors
/// If the value has no JSON form, such as NaN or a map with keys that are not strings.
pub fn to_canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json_canonicalizer::to_vec(value)
}

/// Returns the canonical form of a JSON text. The error is the text itself, without blanks around it, if it has a number
/// whose digits the canonical form would not keep.
pub fn canonical_of_text(text: CheckedJson<'_>) -> Result<Vec<u8>, &str> {
    let exact = text.first_inexact_number().is_none();
    match exact.then(|| text.value().ok()).flatten() {
        Some(value) => Ok(canonical(&value)),
        None => Err(text.text().trim_ascii()),
    }
}

/// Returns `true` if the bytes are strict JSON in canonical form, nested no deeper than [`json::MAX_DEPTH`].
pub fn is_canonical(bytes: &[u8]) -> bool {
    json::parse_strict(bytes, Limits::whole(bytes.len())).is_ok_and(|value| canonical(&value) == bytes)
}
