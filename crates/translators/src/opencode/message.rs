//! Messages of OpenCode: the text parts are the content, all other parts are children.

use serde_json::{Map, Value, json};

use super::objects::Message;
use super::{part, take_time};
use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::{ASSISTANT, Entry, USER};
use crate::native::Native;
use crate::usage::{TokenUsage, count, sum};

/// Makes the entry of a message.
pub(super) fn entry(message: Message, account: &mut TranslationAccount) -> Entry {
    let mut object = message.object;
    let kind = if object.text("role") == Some(ASSISTANT) { ASSISTANT } else { USER };
    object.drop_if("role", Some(kind));
    account.entry("message", NativeOutcome::Kept(kind));
    let (mut texts, mut natives, mut children) = (Vec::new(), Vec::new(), Vec::new());
    for mut part in message.parts {
        let name = format!("part/{}", part.text("type").unwrap_or("untyped"));
        match part.take_if_text() {
            Some(text) => {
                account.entry(name, NativeOutcome::Kept(kind));
                texts.push(text);
                natives.push(part.rest());
            }
            None => {
                let entries = part::entries(part);
                account.entry(name, NativeOutcome::Kept(entries.first().map_or("system-event", Entry::kind)));
                children.extend(entries);
            }
        }
    }
    let (id, parent) = (object.take_text("id"), object.take_text("parentID"));
    let time = take_time(&mut object, "created");
    let model = if kind == ASSISTANT { object.take_text("modelID") } else { None };
    let usage = token_usage(&mut object);
    object.put_objects("text-parts", natives);
    Entry::message(kind, content(texts))
        .with("id", id)
        .with("parent-id", parent)
        .at(time)
        .with("model-id", model)
        .usage(usage)
        .native(object)
        .children(children)
}

/// The text of the only text part, or one block for each.
fn content(mut texts: Vec<String>) -> Option<Value> {
    match texts.len() {
        0 => None,
        1 => texts.pop().map(Value::String),
        _ => Some(texts.into_iter().map(|text| json!({ "type": "text", "text": text })).collect()),
    }
}

/// The usage stands on the message and again on its `step-finish` part, so only the message's counts.
fn token_usage(object: &mut Native) -> TokenUsage {
    let none = Value::Object(Map::new());
    let tokens = object.get("tokens").unwrap_or(&none);
    let cache = tokens.get("cache").unwrap_or(&none);
    let cached = count(cache, "read");
    let input = sum([count(tokens, "input"), cached, count(cache, "write")]);
    let (output, reasoning) = (count(tokens, "output"), count(tokens, "reasoning"));
    let cost = object.get("cost").and_then(Value::as_number).cloned();
    TokenUsage { input, cached, output, reasoning, total: sum([input, output, reasoning]), cost }
}

trait TextPart {
    /// Takes the text of a text part.
    fn take_if_text(&mut self) -> Option<String>;
}

impl TextPart for Native {
    fn take_if_text(&mut self) -> Option<String> {
        if self.text("type") != Some("text") {
            return None;
        }
        let text = self.take_text("text")?;
        self.take("type");
        Some(text)
    }
}
