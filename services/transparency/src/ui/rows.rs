//! Entries as rows of a list.

use explorer::EntryRow;
use serde_json::Value;

use crate::view::entry_view::EntryView;

/// The facts that a row shows, if an entry has them.
const FACTS: [&str; 8] = ["verdict", "status", "tool", "kind", "seq", "tier", "task_type", "receipt_id"];
/// Longest fact in a row, in characters.
const FACT_CHARS: usize = 80;

/// The rows of these entries.
pub fn rows(entries: &[EntryView]) -> Vec<EntryRow> {
    entries.iter().map(row).collect()
}

/// The row of an entry.
pub fn row(entry: &EntryView) -> EntryRow {
    EntryRow {
        id: entry.entry_id.clone(),
        leaf: entry.index,
        at: entry.at.clone(),
        content_type: entry.content_type.clone(),
        issuer: entry.iss.clone(),
        subject: entry.sub.clone(),
        session: text(&entry.facts, "session"),
        facts: FACTS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), text(&entry.facts, name)?)))
            .collect(),
        erased: entry.erased,
    }
}

fn text(facts: &Value, name: &str) -> Option<String> {
    let text = match facts.get(name)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(if name == "session" { text } else { text.chars().take(FACT_CHARS).collect() })
}
