//! Server-sent events as text (HTML, section 9.2). JSON has no raw line breaks, so one `data:` line is enough.

use crate::view::entry_view::EntryView;

/// Milliseconds before a browser reconnects automatically.
const RETRY: u32 = 2000;

/// The event ID of a stream before leaf 0, when no entry was sent yet.
pub const NONE: &str = "none";

/// The event of an entry; its ID is the leaf.
pub fn entry(view: &EntryView) -> String {
    let data = serde_json::to_string(view).unwrap_or_default();
    format!("id: {}\nevent: entry\ndata: {data}\n\n", view.index)
}

/// The first event of a stream: its position. An event without data only sets the reader's `Last-Event-ID`, so a reader
/// that is disconnected before the first entry resumes at the same position.
pub fn opening(next: u64) -> String {
    format!("retry: {RETRY}\nid: {}\n\n", before(next))
}

/// A heartbeat with the reader's position, since a filter may match no entry for a long time.
pub fn heartbeat(next: u64) -> String {
    format!(": heartbeat\nid: {}\n\n", before(next))
}

/// The last event of a stream, with the reason for its end.
pub fn end(reason: &str, detail: &str) -> String {
    let data = serde_json::json!({ "reason": reason, "detail": detail });
    format!("event: end\ndata: {data}\n\n")
}

fn before(next: u64) -> String {
    next.checked_sub(1).map_or_else(|| NONE.to_owned(), |last| last.to_string())
}
