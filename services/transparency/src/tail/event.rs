//! Server-sent events as text (HTML, section 9.2). JSON has no raw line breaks, so one `data:` line is enough.

use crate::routes::listing::EntryView;

/// How long a browser waits before it comes back by itself, in milliseconds.
const RETRY: u32 = 2000;

/// How a stream says that nothing has been told yet.
pub const NONE: &str = "none";

/// An entry.
pub fn entry(view: &EntryView) -> String {
    let data = serde_json::to_string(view).unwrap_or_default();
    format!("id: {}\nevent: entry\ndata: {data}\n\n", view.index())
}

/// The first words of a stream: where it begins. An event without data only moves the reader's `Last-Event-ID`, so one
/// who is cut off before the first entry comes back to the same place.
pub fn opening(next: u64) -> String {
    format!("retry: {RETRY}\nid: {}\n\n", before(next))
}

/// A sign of life, and how far the reader may consider himself told: a filter may find nothing for long.
pub fn heartbeat(next: u64) -> String {
    format!(": heartbeat\nid: {}\n\n", before(next))
}

/// The last words.
pub fn end(reason: &str, detail: &str) -> String {
    let data = serde_json::json!({ "reason": reason, "detail": detail });
    format!("event: end\ndata: {data}\n\n")
}

fn before(next: u64) -> String {
    next.checked_sub(1).map_or_else(|| NONE.to_owned(), |last| last.to_string())
}
