//! Entries as rows of a list.

use explorer::EntryRow;
use registration::policy::essence;
use registration::vap::VAP_VERDICT;
use serde_json::Value;
use vap::audit::VAP_AUDIT;
use vap::message::{NO_SESSION, UNBOUND};

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
        session: session(entry),
        facts: FACTS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), short_text(&entry.facts, name)?)))
            .collect(),
        erased: entry.erased,
    }
}

/// The session of an entry, under the name by which a search finds it; `None` if it belongs to none.
fn session(entry: &EntryView) -> Option<String> {
    let session = match entry.content_type.as_deref().map(essence).as_deref() {
        Some(VAP_VERDICT) => text(&entry.facts, "session_id"),
        Some(VAP_AUDIT) => entry.sub.clone(),
        _ => text(&entry.facts, "session"),
    };
    session.filter(|session| session != NO_SESSION && !session.starts_with(UNBOUND))
}

fn short_text(facts: &Value, name: &str) -> Option<String> {
    Some(text(facts, name)?.chars().take(FACT_CHARS).collect())
}

fn text(facts: &Value, name: &str) -> Option<String> {
    match facts.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
