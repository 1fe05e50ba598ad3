//! Reader for Qwen Code: `~/.qwen/projects/FOLDER/chats/SESSION.jsonl`, one object a line. A subagent has a file of its own,
//! `subagents/SESSION/agent-ID.jsonl`, whose lines name the session of its caller.
//!
//! Lines of type `user`, `assistant` and `tool_result` have a message with the parts of the Gemini API. All others are
//! events: commands, compactions of the context, rewinds, and telemetry, which repeats much of the messages.

use serde_json::Value;

use crate::account::{NativeOutcome, TranslationAccount};
use crate::blocks::Blocks;
use crate::entry::{ASSISTANT, Entry, SYSTEM_EVENT, TOOL_RESULT, USER};
use crate::envelope;
use crate::lines::{self, Line};
use crate::native::Native;
use crate::session::{Models, Session};
use crate::source::SourceFile;
use crate::usage::{TokenUsage, count};

/// The status of a call that did what it should.
const SUCCESS: &str = "success";

/// Returns whether a line is one of Qwen Code's.
pub(crate) fn recognizes(line: &Value) -> bool {
    let is_of_qwen = line.get("systemPayload").is_some() || line.pointer("/message/parts").is_some();
    is_of_qwen && line.get("sessionId").is_some() && line.get("type").is_some()
}

/// Reads the session of a file.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Session> {
    let lines = lines::read(file, account);
    if lines.is_empty() {
        return Vec::new();
    }
    let mut session =
        Session { models: models(&lines), ..envelope::session("qwen-code", file, &lines, account) };
    for Line { value, .. } in lines {
        let kind = envelope::native_type(&value);
        let entries = entries(value, &session, account);
        account.entry(kind, NativeOutcome::Kept(entries.first().map_or(SYSTEM_EVENT, Entry::kind)));
        session.entries.extend(entries);
    }
    vec![session]
}

fn models(lines: &[Line]) -> Models {
    let mut models = Models::default();
    let named = lines.iter().filter_map(|line| line.value.get("model")?.as_str());
    named.for_each(|model| models.add(model));
    models
}

fn entries(line: Value, session: &Session, account: &mut TranslationAccount) -> Vec<Entry> {
    let mut line = match Native::of(line) {
        Ok(line) => line,
        Err(value) => return vec![Entry::event_of_value("non-object", value)],
    };
    envelope::drop_repeated(&mut line, session);
    let has_message = line.get("message").is_some_and(Value::is_object);
    match line.text("type") {
        Some(ASSISTANT) if has_message => message(ASSISTANT, line, account),
        Some(USER | "tool_result") if has_message => message(USER, line, account),
        _ => vec![envelope::event(line)],
    }
}

fn message(kind: &'static str, mut line: Native, account: &mut TranslationAccount) -> Vec<Entry> {
    line.drop_if("type", Some(kind));
    let mut message = line.take_object("message").unwrap_or_default();
    message.drop_if("role", Some(if kind == ASSISTANT { "model" } else { USER }));
    let mut blocks = Blocks::separate(message.take_array("parts").unwrap_or_default(), account, part);
    line.put_object("message", message.rest());
    if let Some(call) = line.get("toolCallResult") {
        blocks.entries = blocks.entries.into_iter().map(|entry| with_status(entry, call)).collect();
    }
    let model = if kind == ASSISTANT { line.take_text("model") } else { None };
    let usage = line.get("usageMetadata").map(token_usage).unwrap_or_default();
    envelope::entries(kind, blocks, line, |entry| entry.with("model-id", model).usage(usage))
}

/// Returns the type of a part, and its entry or the part itself if it stays content.
fn part(part: Value) -> (String, Result<Entry, Value>) {
    let mut part = match Native::of(part) {
        Ok(part) => part,
        Err(value) => return ("non-object".to_owned(), Err(value)),
    };
    let (kind, entry) = if let Some(call) = part.take_object("functionCall") {
        ("functionCall", tool_call(call).native(part))
    } else if let Some(response) = part.take_object("functionResponse") {
        ("functionResponse", tool_result(response).native(part))
    } else if part.get("thought") == Some(&Value::Bool(true)) && part.text("text").is_some() {
        ("thought", reasoning(part))
    } else {
        let kind = if part.text("text").is_some() { "text" } else { "part" };
        return (kind.to_owned(), Err(part.into_value()));
    };
    (kind.to_owned(), Ok(entry))
}

fn tool_call(mut call: Native) -> Entry {
    let (id, name, input) = (call.take_text("id"), call.take_text("name"), call.take("args"));
    Entry::tool_call(name, input).with("call-id", id).native(call)
}

/// Makes the entry of a response. Mostly it has one member, `output` or `error`, with a text.
fn tool_result(mut response: Native) -> Entry {
    let id = response.take_text("id");
    let answer = response.take("response");
    let is_error = answer.as_ref().map(|answer| answer.get("error").is_some());
    let output = answer.map(|answer| match answer {
        Value::Object(mut members) if members.len() == 1 => {
            let only = members.remove("output").or_else(|| members.remove("error"));
            only.unwrap_or(Value::Object(members))
        }
        other => other,
    });
    Entry::tool_result(output).with("call-id", id).with("is-error", is_error).native(response)
}

/// Adds the status of a call to its result, whose response may not say that the call has failed.
fn with_status(entry: Entry, call: &Value) -> Entry {
    let text = |name: &str| call.get(name).and_then(Value::as_str);
    match text("status") {
        Some(status) if entry.kind() == TOOL_RESULT && entry.text("call-id") == text("callId") => {
            entry.with("status", Some(status)).with("is-error", Some(status != SUCCESS))
        }
        _ => entry,
    }
}

fn reasoning(mut part: Native) -> Entry {
    part.take("thought");
    Entry::reasoning(part.take_text("text").into()).native(part)
}

fn token_usage(usage: &Value) -> TokenUsage {
    TokenUsage {
        input: count(usage, "promptTokenCount"),
        cached: count(usage, "cachedContentTokenCount"),
        output: count(usage, "candidatesTokenCount"),
        reasoning: count(usage, "thoughtsTokenCount"),
        total: count(usage, "totalTokenCount"),
        cost: None,
    }
}
