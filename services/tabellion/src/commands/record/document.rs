//! Records in files: the JSON itself, or a statement with the record as its payload.

use std::path::Path;

use jiff::Timestamp;
use jose::json::{Limits, MAX_DEPTH, parse_strict};
use serde_json::Value;

use crate::commands::statement;
use crate::commands::verify::input::TAGGED_SIGN1;
use crate::console::{Exit, Failure, files};

/// Maximum size of a record in bytes.
const MAX_RECORD: usize = 64 << 20;

/// Returns the bytes of the record in a file. A signature around it is not verified.
pub fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = files::read(file)?;
    if !bytes.starts_with(TAGGED_SIGN1) {
        return Ok(bytes);
    }
    let statement = statement::parse(bytes, &file.display().to_string())?;
    let elsewhere =
        |found: &str| no_record(file, found.to_owned()).hint("name the file with the record instead");
    match (statement.header().hash_envelope(), statement.payload()) {
        (Some(_), _) => Err(elsewhere("its payload is only a hash")),
        (None, None) => Err(elsewhere("its payload is detached")),
        (None, Some(payload)) => Ok(payload.to_vec()),
    }
}

/// Reads the record in a file.
pub fn read(file: &Path) -> Result<Value, Failure> {
    parse(&bytes(file)?, file)
}

/// Parses a record in JSON; `file` is its name in errors.
pub fn parse(bytes: &[u8], file: &Path) -> Result<Value, Failure> {
    let limits = Limits { bytes: MAX_RECORD, depth: MAX_DEPTH };
    let record = parse_strict(bytes, limits).map_err(|error| no_record(file, error.to_string()))?;
    match record.pointer("/session/entries").is_some_and(Value::is_array) {
        true => Ok(record),
        false => Err(no_record(file, "it has no session with entries".to_owned())),
    }
}

/// The failure for a file without a record in JSON.
pub fn no_record(file: &Path, found: String) -> Failure {
    Failure::new(Exit::Failure, "no-record", format!("{} holds no conversation record", file.display()))
        .fact("found", found)
}

/// Where an entry is in its record.
pub struct EntryPlace<'r> {
    /// The JSON pointer.
    pub pointer: String,
    /// Number of entries around it.
    pub depth: usize,
    /// Its time, or that of the entry around it.
    pub time: Option<&'r Value>,
}

/// Calls `visit` with each entry, children after their parents.
pub fn each_entry<'r>(record: &'r Value, visit: &mut dyn FnMut(&EntryPlace<'r>, &'r Value)) {
    let session = EntryPlace { pointer: "/session/entries".to_owned(), depth: 0, time: None };
    each(&record["session"]["entries"], &session, visit);
}

/// Visits a list of entries; `list` is the place of the list.
fn each<'r>(entries: &'r Value, list: &EntryPlace<'r>, visit: &mut dyn FnMut(&EntryPlace<'r>, &'r Value)) {
    for (position, entry) in entries.as_array().into_iter().flatten().enumerate() {
        let pointer = format!("{}/{position}", list.pointer);
        let place = EntryPlace { pointer, depth: list.depth, time: entry.get("timestamp").or(list.time) };
        visit(&place, entry);
        let children = EntryPlace {
            pointer: format!("{}/children", place.pointer),
            depth: place.depth + 1,
            time: place.time,
        };
        each(&entry["children"], &children, visit);
    }
}

/// Returns a member that is a text; empty if it is absent.
pub fn text<'v>(of: &'v Value, name: &str) -> &'v str {
    of[name].as_str().unwrap_or_default()
}

/// Returns a time of a record: text of RFC 3339, or milliseconds since 1970; `None` if it is neither.
pub fn instant(time: &Value) -> Option<Timestamp> {
    match time {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => Timestamp::from_millisecond(number.as_i64()?).ok(),
        _ => None,
    }
}

/// Returns a member that is a time, as text; empty if it is absent. A text stays as it is.
pub fn time_text(of: &Value, name: &str) -> String {
    match &of[name] {
        Value::String(text) => text.clone(),
        time => instant(time).map(|time| time.to_string()).unwrap_or_default(),
    }
}

/// Returns what an entry says, as text: its content, output, input or data.
pub fn text_of(entry: &Value) -> String {
    let body = ["content", "output", "input", "data"].into_iter().find_map(|name| entry.get(name));
    body.map(plain).unwrap_or_default()
}

/// Returns the text of a value: of text blocks their texts, of other values their JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) if blocks.iter().all(|block| block["text"].is_string()) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}
