//! Sizes of entries in a record. They tell that a record would be too large without making it: of a large session that takes
//! many times the memory of one of its parts.

use serde_json::{Value, json};

use crate::entry::Entry;
use crate::redaction::{Redaction, is_marker, is_reference};

/// Size of the quotes, the colon and the comma of a member.
const MEMBER: usize = 4;

/// Returns about the number of bytes that an entry has if nothing is left out of it, without identifiers.
pub(crate) fn whole(entry: &Entry) -> usize {
    let members: usize = entry.all_members().map(member).sum();
    members + entry.child_entries().iter().map(whole).sum::<usize>()
}

/// Returns a number of bytes that an entry has at least in any record, whichever other entries are there.
pub(crate) fn least(entry: &Entry, redaction: &Redaction) -> usize {
    let mut record = json!({ "session": { "entries": [entry.clone().into_value()] } });
    redaction.apply(&mut record);
    record.pointer("/session/entries").map_or(0, value)
}

fn member((name, of): (&String, &Value)) -> usize {
    name.len() + MEMBER + value(of)
}

/// Returns the size without what a record may have in another form: identifiers, which may have to move and whose replacements
/// are numbered in the order of all entries, markers, which may stand for less, escapes, and the digits of numbers.
fn value(of: &Value) -> usize {
    match of {
        Value::Array(items) => items.iter().map(|item| 1 + value(item)).sum(),
        Value::Object(members) => members.iter().filter(|(name, _)| !is_reference(name)).map(member).sum(),
        Value::String(text) if is_marker(text) => 0,
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
