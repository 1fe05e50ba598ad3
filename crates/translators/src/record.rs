//! Records: the JSON that is signed and registered.

use std::collections::HashSet;

use jose::{jcs, json::check_text};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::session::{Session, Vcs};

/// The name of this translator in `recording-agent`.
pub const TRANSLATOR: &str = "tabellion";
/// The version of this translator in `recording-agent`. It is part of the record's identifier.
pub const TRANSLATOR_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The version of the draft's schema.
const SCHEMA_VERSION: &str = "3.0.0-draft";

/// A conversation record.
///
/// Parsed entries take many times the memory of their bytes, so only the bytes are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    /// The record without its entries.
    frame: Value,
    bytes: Vec<u8>,
    /// Number of values, as a reader of the record counts them.
    values: usize,
    native_session: String,
}

impl SessionRecord {
    /// The record as a JSON value, parsed from its bytes at each call.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The record as a JSON value without its entries.
    pub fn frame(&self) -> &Value {
        &self.frame
    }

    /// The record as bytes, in canonical JSON (RFC 8785). If that would change a number, because it is not an exact double, or
    /// write it as an integer beyond 64 bits, which a record may not have, the numbers are written in full instead.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// SHA-256 digest of the bytes, as `previous-record` names it: `sha256:` and lower-case hex.
    pub fn digest(&self) -> String {
        digest(&self.bytes)
    }

    /// The record's identifier, a UUID.
    pub fn id(&self) -> &str {
        self.frame.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// The session's identifier.
    pub fn session_id(&self) -> &str {
        session_id(&self.frame)
    }

    /// The session's identifier before redaction.
    pub fn native_session(&self) -> &str {
        &self.native_session
    }

    /// Number of values in the record, the record included.
    pub(crate) fn values(&self) -> usize {
        self.values
    }

    /// Serializes a record of this session.
    pub(crate) fn of(mut value: Value, native_session: String) -> SessionRecord {
        let plain = value.to_string();
        let exact = check_text(&plain).is_ok_and(|text| text.first_inexact_number().is_none());
        let canonical = exact && !has_large_double(&value);
        let bytes = if canonical { jcs::canonical(&value) } else { plain.into_bytes() };
        let values = count(&value);
        if let Some(session) = value.get_mut("session").and_then(Value::as_object_mut) {
            session.remove("entries");
        }
        SessionRecord { frame: value, bytes, values, native_session }
    }
}

/// Returns the session's identifier in a record; empty if it has none.
pub(crate) fn session_id(record: &Value) -> &str {
    record.pointer("/session/session-id").and_then(Value::as_str).unwrap_or_default()
}

/// Returns whether canonical JSON writes a double of the value as an integer beyond 64 bits, which a record may not have
/// (reading 1.6-5).
fn has_large_double(value: &Value) -> bool {
    /// From here on canonical JSON writes numbers with an exponent.
    const EXPONENT: f64 = 1e21;
    match value {
        Value::Array(items) => items.iter().any(has_large_double),
        Value::Object(members) => members.values().any(has_large_double),
        Value::Number(number) => {
            // Of -2^63 canonical JSON rounds the digits up.
            let is_beyond = |of: f64| !(-(2f64.powi(63)) < of && of < 2f64.powi(64));
            number.is_f64() && number.as_f64().is_some_and(|of| is_beyond(of) && of.abs() < EXPONENT)
        }
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Returns the number of values in a value, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Returns `sha256:` and the digest in lower-case hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// Assembles a record. The source is added after redaction.
pub(crate) fn assemble(id: String, mut session: Session, previous: Option<&str>) -> Value {
    let (vcs, attribution) = (session.vcs.take().map(Vcs::into_value), session.attribution.take());
    let mut record = Map::new();
    record.insert("version".to_owned(), SCHEMA_VERSION.into());
    record.insert("id".to_owned(), id.into());
    record.insert("recording-agent".to_owned(), recording_agent());
    record.insert("session".to_owned(), session.into_value());
    let optional =
        [("vcs", vcs), ("file-attribution", attribution), ("previous-record", previous.map(Value::from))];
    let present = optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    record.extend(present);
    let mut record = Value::Object(record);
    if let Some(Value::Array(entries)) = record.pointer_mut("/session/entries") {
        make_ids_unique(entries, &mut HashSet::new());
    }
    record
}

fn recording_agent() -> Value {
    json!({ "name": TRANSLATOR, "version": TRANSLATOR_VERSION })
}

/// Returns a UUID (version 8) that is determined by these texts.
pub(crate) fn identifier(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    let digest = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// Moves an identifier that an earlier entry has to the native members, since identifiers are unique in a record.
fn make_ids_unique(entries: &mut [Value], seen: &mut HashSet<String>) {
    for entry in entries {
        let Value::Object(members) = entry else { continue };
        let repeated =
            members.get("id").and_then(Value::as_str).is_some_and(|id| !seen.insert(id.to_owned()));
        if repeated && let Some(id) = members.remove("id") {
            let native = members.entry("native").or_insert_with(|| json!({}));
            if let Value::Object(native) = native {
                native.insert("repeated-id".to_owned(), id);
            }
        }
        if let Some(Value::Array(children)) = members.get_mut("children") {
            make_ids_unique(children, seen);
        }
    }
}
