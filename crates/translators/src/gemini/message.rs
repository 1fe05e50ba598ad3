//! Messages of Gemini CLI with their thoughts and tool calls.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::{ASSISTANT, Entry, REASONING, TOOL_CALL, TOOL_RESULT, USER};
use crate::native::Native;
use crate::usage::{TokenUsage, count};

/// The states of a call that did not do what it should.
const FAILED: [&str; 2] = ["error", "cancelled"];

/// The results that the tool calls of messages state. Newer versions repeat them in messages of type `user`, as the model is
/// given them.
pub(super) struct StatedResults<'m>(HashSet<&'m Value>);

impl<'m> StatedResults<'m> {
    pub fn of(messages: impl Iterator<Item = &'m Native>) -> Self {
        let calls = messages.filter_map(|message| message.get("toolCalls")?.as_array()).flatten();
        StatedResults(calls.filter_map(|call| call.get("result")?.as_array()).flatten().collect())
    }

    /// Returns whether a message is nothing but such results.
    pub fn has(&self, message: &Native) -> bool {
        let parts = message.get("content").and_then(Value::as_array).filter(|parts| !parts.is_empty());
        let is_stated = |part: &Value| part.get("functionResponse").is_some() && self.0.contains(part);
        message.text("type") == Some(USER) && parts.is_some_and(|parts| parts.iter().all(is_stated))
    }
}

/// Makes the entry of a message. Messages that are neither the user's nor the model's are events.
pub(super) fn entry(mut message: Native, account: &mut TranslationAccount) -> Entry {
    let kind = match message.text("type") {
        Some("user") => USER,
        Some("gemini" | "model") => ASSISTANT,
        _ => return event(message),
    };
    message.take("type");
    let (id, time) = (message.take_text("id"), message.take("timestamp"));
    let content = message.take("content").or_else(|| message.take("parts"));
    let mut children: Vec<Entry> = thoughts(&mut message, account);
    children.extend(tool_calls(&mut message, account));
    let model = if kind == ASSISTANT { message.take_text("model") } else { None };
    let usage = message.get("tokens").map(token_usage).unwrap_or_default();
    let entry = Entry::message(kind, content).with("id", id).at(time).with("model-id", model).usage(usage);
    entry.native(message).children(children)
}

fn event(mut message: Native) -> Entry {
    let kind = message.take_text("type").unwrap_or_else(|| "untyped".to_owned());
    let (id, time) = (message.take_text("id"), message.take("timestamp"));
    Entry::event(kind, message.rest()).with("id", id).at(time)
}

/// Thoughts are counted beside the output, not in it: total = input + output + thoughts + tool.
fn token_usage(tokens: &Value) -> TokenUsage {
    TokenUsage {
        input: count(tokens, "input"),
        cached: count(tokens, "cached"),
        output: count(tokens, "output"),
        reasoning: count(tokens, "thoughts"),
        total: count(tokens, "total"),
        cost: None,
    }
}

fn thoughts(message: &mut Native, account: &mut TranslationAccount) -> Vec<Entry> {
    let thoughts = message.take_array("thoughts").unwrap_or_default();
    thoughts.into_iter().map(|thought| reasoning(thought, account)).collect()
}

fn reasoning(thought: Value, account: &mut TranslationAccount) -> Entry {
    account.part("thought", NativeOutcome::Kept(REASONING));
    match Native::of(thought) {
        Ok(mut thought) => {
            let (subject, time) = (thought.take_text("subject"), thought.take("timestamp"));
            let content = thought.take("description").unwrap_or_else(|| json!(""));
            Entry::reasoning(content).with("subject", subject).at(time).native(thought)
        }
        Err(value) => Entry::reasoning(value),
    }
}

fn tool_calls(message: &mut Native, account: &mut TranslationAccount) -> Vec<Entry> {
    let calls = message.take_array("toolCalls").unwrap_or_default();
    calls.into_iter().flat_map(|call| call_and_result(call, account)).collect()
}

fn call_and_result(call: Value, account: &mut TranslationAccount) -> Vec<Entry> {
    account.part("toolCall", NativeOutcome::Kept(TOOL_CALL));
    let mut call = match Native::of(call) {
        Ok(call) => call,
        Err(value) => return vec![Entry::tool_call(None, Some(value))],
    };
    let (id, name, input) = (call.take_text("id"), call.take_text("name"), call.take("args"));
    let time = call.take("timestamp");
    let result = call.take("result").map(|output| {
        account.part("toolResult", NativeOutcome::Kept(TOOL_RESULT));
        let status = call.take_text("status");
        let is_error = status.as_deref().map(|status| FAILED.contains(&status));
        Entry::tool_result(Some(output))
            .with("call-id", id.clone())
            .with("status", status)
            .with("is-error", is_error)
            .at(time.clone())
    });
    let entry = Entry::tool_call(name, input).with("call-id", id).at(time).native(call);
    std::iter::once(entry).chain(result).collect()
}
