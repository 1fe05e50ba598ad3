//! The JSON Canonicalization Scheme, RFC 8785.
//!
//! JCS writes every number as a double, so two integers beyond 2^53 may get the same canonical
//! form. Whoever signs or hashes canonical JSON refuses such numbers first: that rule is the
//! profile's.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Limits};

/// The canonical form of a value.
pub fn canonical(value: &Value) -> Vec<u8> {
    to_canonical(value).expect("a JSON value has text for names and no NaN")
}

/// The canonical form of a type's JSON; fails if the type has none (NaN, a map with keys that
/// are not text).
pub fn to_canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json_canonicalizer::to_vec(value)
}

/// Whether the bytes are strict JSON in canonical form, nested no deeper than
/// [`json::MAX_DEPTH`].
pub fn is_canonical(bytes: &[u8]) -> bool {
    let limits = Limits { bytes: bytes.len(), depth: json::MAX_DEPTH };
    json::parse_strict(bytes, limits).is_ok_and(|value| canonical(&value) == bytes)
}
