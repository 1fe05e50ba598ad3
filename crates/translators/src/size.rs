//! The least size of an entry in a record. It tells that a record would be too large without making it: of a large session
//! that takes many times the memory of one of its parts.

use serde_json::{Value, json};

use crate::entry::Entry;
use crate::redaction::{Redaction, is_marker};

/// Returns a number of bytes that an entry has at least in any record, whichever other entries are there.
pub(crate) fn least(entry: Entry, redaction: &Redaction) -> usize {
    let mut record = json!({ "session": { "entries": [entry.into_value()] } });
    redaction.apply(&mut record);
    record.pointer("/session/entries").map_or(0, bytes)
}

/// Returns the size without what a record may have in another form: identifiers, which may have to move, markers, which may stand
/// for less, escapes, and digits of numbers.
fn bytes(value: &Value) -> usize {
    /// Size of the quotes, the colon and the comma of a member.
    const MEMBER: usize = 4;
    match value {
        Value::Array(items) => items.iter().map(|item| 1 + bytes(item)).sum(),
        Value::Object(members) => {
            let sizes = members.iter().filter(|(name, _)| *name != "id");
            sizes.map(|(name, value)| name.len() + MEMBER + bytes(value)).sum()
        }
        Value::String(text) if is_marker(text) => 0,
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
