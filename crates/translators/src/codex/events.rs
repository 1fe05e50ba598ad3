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
        let texts = match kind {
            "user_message" | "agent_message" => event.text("message").map(|text| vec![text]),
            "agent_reasoning" | "agent_reasoning_raw_content" => event.text("text").map(|text| vec![text]),
            "item_completed" => event.get("item").and_then(texts_only),
            _ => None,
        };
        texts.is_some_and(|texts| !texts.is_empty() && texts.iter().all(|text| self.0.contains(*text)))
    }
}

/// Returns the texts of an item that is a message or reasoning; `None` if it has anything else.
fn texts_only(item: &Value) -> Option<Vec<&str>> {
    let members: &[&str] = match item.get("type")?.as_str()? {
        "UserMessage" | "AgentMessage" => &["content"],
        "Reasoning" => &["summary_text", "raw_content"],
        _ => return None,
    };
    let parts = members.iter().filter_map(|name| item.get(*name)?.as_array()).flatten();
    parts.map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
}

fn texts(item: &Value) -> impl Iterator<Item = &str> {
    let parts = ["content", "summary"].into_iter().filter_map(|name| item.get(name)?.as_array()).flatten();
    parts.filter_map(|part| part.get("text")?.as_str())
}

pub(super) fn entry(mut event: Native) -> Entry {
    let kind = event.take_text("type").unwrap_or_else(|| "event_msg".to_owned());
    Entry::event(kind, event.rest())
}
