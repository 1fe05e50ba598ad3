//! The facts of stored entries: those that their statements contain, and those that the log stores with them.

use registration::entry_facts;
use scitt::SignedStatement;
use serde_json::{Map, Value};
use store::Entry;

/// Returns all facts of an entry; if its statement is erased or cannot be read, only those that are stored.
pub fn facts_of(entry: &Entry) -> Map<String, Value> {
    match entry.statement.clone().map(SignedStatement::parse) {
        Some(Ok(statement)) => entry_facts(&statement, &entry.facts),
        Some(Err(_)) | None => serde_json::from_str(&entry.facts).unwrap_or_default(),
    }
}
