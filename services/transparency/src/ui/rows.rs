//! Entries as rows of a list.

use explorer::EntryRow;
use registration::aer::AER_JSON;
use registration::limits::CONVERSATION_TEXT;
use registration::policy::essence;
use registration::vap::VAP_VERDICT;
use serde_json::Value;
use vap::audit::VAP_AUDIT;
use vap::message::{NO_SESSION, UNBOUND};

use crate::view::entry_view::EntryView;

/// The facts that a row shows, if an entry has them, and where the entry's facts have them.
const FACTS: [(&str, &str); 11] = [
    ("verdict", "/verdict"),
    ("status", "/status"),
    ("tool", "/tool"),
    ("kind", "/kind"),
    ("seq", "/seq"),
    ("tier", "/tier"),
    ("task_type", "/task_type"),
    ("receipt_id", "/receipt_id"),
    ("entries", "/entries/total"),
    ("tools", "/tools"),
    ("model", "/model"),
];

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
        facts: facts(entry),
        erased: entry.erased,
    }
}

fn facts(entry: &EntryView) -> Vec<(String, String)> {
    // The decision of an execution receipt. An audit record of an outcome has the ID of its decision there.
    let decision = is_of_type(entry, AER_JSON).then_some(("decision", "/decision"));
    let shown = decision.into_iter().chain(FACTS);
    shown.filter_map(|(name, place)| Some((name.to_owned(), text(&entry.facts, place)?))).collect()
}

fn is_of_type(entry: &EntryView, content_type: &str) -> bool {
    entry.content_type.as_deref().map(essence).as_deref() == Some(content_type)
}

/// The session of an entry, under the name by which a search finds it; `None` if it belongs to none.
fn session(entry: &EntryView) -> Option<String> {
    let session = match entry.content_type.as_deref().map(essence).as_deref() {
        Some(VAP_VERDICT) => text(&entry.facts, "/session_id"),
        Some(VAP_AUDIT) => entry.sub.clone(),
        _ => text(&entry.facts, "/session").filter(|session| is_whole(session)),
    };
    session.filter(|session| session != NO_SESSION && !session.starts_with(UNBOUND))
}

/// Returns whether a fact is surely the whole name: facts are cut, and have no U+0000.
fn is_whole(fact: &str) -> bool {
    fact.chars().count() < CONVERSATION_TEXT && !fact.contains(char::REPLACEMENT_CHARACTER)
}

/// Returns the fact at this JSON Pointer as text; of several texts, one after the other.
fn text(facts: &Value, place: &str) -> Option<String> {
    match facts.pointer(place)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(texts) => Some(texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")),
        _ => None,
    }
}
