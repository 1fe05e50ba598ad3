//! Events of Codex's user interface (`event_msg`). Some repeat what a response item says.

use std::collections::HashSet;

use serde_json::Value;

use crate::entry::Entry;
use crate::lines::Line;
use crate::native::Native;

/// The members that an echo may have beside its text. `kind`, `phase` and `client_id` say nothing that was said or shown.
const OF_ECHOES: [&str; 5] = ["type", "images", "kind", "phase", "client_id"];

/// The texts and images of all response items. An event is an echo only if all of its own are among them, and it has nothing
/// else, so that nothing is lost.
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
            "user_message" | "agent_message" => text_and_images(event, "message"),
            "agent_reasoning" | "agent_reasoning_raw_content" => text_and_images(event, "text"),
            "item_completed" => event.get("item").and_then(texts_only),
            _ => None,
        };
        texts.is_some_and(|texts| !texts.is_empty() && texts.iter().all(|text| self.0.contains(*text)))
    }
}

/// Returns the text in a member of an event, and the addresses of its images; `None` if the event has anything else, such as
/// the names of files.
fn text_and_images<'e>(event: &'e Native, member: &str) -> Option<Vec<&'e str>> {
    let text = event.text(member).filter(|_| event.has_only(&[&OF_ECHOES[..], &[member]].concat()))?;
    let images = match event.get("images") {
        Some(images) => images.as_array()?.as_slice(),
        None => &[],
    };
    std::iter::once(Some(text)).chain(images.iter().map(Value::as_str)).collect()
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
    parts.filter_map(|part| part.get("text").or_else(|| part.get("image_url"))?.as_str())
}

pub(super) fn entry(mut event: Native) -> Entry {
    let kind = event.take_text("type").unwrap_or_else(|| "event_msg".to_owned());
    Entry::event(kind, event.rest())
}
