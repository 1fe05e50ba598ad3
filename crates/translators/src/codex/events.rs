//! Events of Codex's user interface (`event_msg`). Some repeat what a response item says.

use std::collections::HashSet;

use serde_json::Value;

use crate::entry::Entry;
use crate::lines::Line;
use crate::native::Native;

/// The texts of all response items. An event is an echo only if its text is among them, so that no text is lost.
pub(super) struct Echoes(HashSet<String>);

impl Echoes {
    pub fn of(lines: &[Line]) -> Echoes {
        let items =
            lines.iter().filter(|line| line.value.get("type").is_some_and(|kind| kind == "response_item"));
        let payloads = items.filter_map(|line| line.value.get("payload"));
        Echoes(payloads.flat_map(texts).map(str::to_owned).collect())
    }

    /// Returns whether an event repeats a response item.
    pub fn has(&self, kind: &str, event: &Native) -> bool {
        let text = match kind {
            "user_message" | "agent_message" => event.text("message"),
            "agent_reasoning" | "agent_reasoning_raw_content" => event.text("text"),
            _ => None,
        };
        text.is_some_and(|text| self.0.contains(text))
    }
}

fn texts(item: &Value) -> impl Iterator<Item = &str> {
    let parts = ["content", "summary"].into_iter().filter_map(|name| item.get(name)?.as_array()).flatten();
    parts.filter_map(|part| part.get("text")?.as_str())
}

pub(super) fn entry(mut event: Native) -> Entry {
    let kind = event.take_text("type").unwrap_or_else(|| "event_msg".to_owned());
    Entry::event(kind, event.rest())
}
