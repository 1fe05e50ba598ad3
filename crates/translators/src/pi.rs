//! Reader for Pi: `~/.pi/agent/sessions/--FOLDER--/TIME_ID.jsonl`, one object a line.
//!
//! The first line describes the session. Lines of type `message` are messages of the user and the assistant, and results of
//! tools; all others are events: changes of the model, compactions of the context, labels, and the state of extensions.

use serde_json::Value;

use crate::account::{NativeOutcome, TranslationAccount};
use crate::blocks::Blocks;
use crate::entry::{ASSISTANT, Entry, USER};
use crate::lines::{self, Line};
use crate::native::Native;
use crate::session::{Models, Session};
use crate::source::SourceFile;
use crate::time::Span;
use crate::usage::{TokenUsage, count, sum};

/// The type of the line that describes the session.
const SESSION: &str = "session";
/// The type of lines with a message.
const MESSAGE: &str = "message";

/// Returns whether a line is one of Pi's.
pub(crate) fn recognizes(line: &Value) -> bool {
    let has = |name: &str| line.get(name).is_some();
    match line.get("type").and_then(Value::as_str) {
        Some(SESSION) => has("id") && has("cwd") && has("timestamp"),
        Some(MESSAGE) => has("parentId") && line.pointer("/message/role").is_some(),
        _ => false,
    }
}

/// Reads the session of a file.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Session> {
    let lines = lines::read(file, account);
    if lines.is_empty() {
        return Vec::new();
    }
    let mut session = header(file, &lines, account);
    for Line { value, .. } in lines {
        let kind = native_type(&value);
        let entry = entry(value, &kind, account);
        account.entry(kind, NativeOutcome::Kept(entry.kind()));
        session.entries.push(entry);
    }
    vec![session]
}

/// Returns the type of a line or, if it has a message, of the message.
fn native_type(line: &Value) -> String {
    let kind = line.get("type").and_then(Value::as_str).unwrap_or("untyped");
    match line.pointer("/message/role").and_then(Value::as_str) {
        Some(role) if kind == MESSAGE => format!("{MESSAGE}/{role}"),
        _ => kind.to_owned(),
    }
}

fn header(file: &SourceFile, lines: &[Line], account: &mut TranslationAccount) -> Session {
    let values = || lines.iter().map(|line| &line.value);
    let described = || values().filter(|line| line.get("type").is_some_and(|kind| kind == SESSION));
    let text = |name: &'static str| described().find_map(|line| line.get(name)?.as_str());
    let id = text("id").unwrap_or(file.stem());
    for other in described().filter_map(|line| line.get("id")?.as_str()).filter(|other| *other != id) {
        account.remark_other_session(&file.path, other);
    }
    let of_messages =
        |name: &'static str| values().filter_map(move |line| line.get(MESSAGE)?.get(name)?.as_str());
    let mut models = Models::default();
    of_messages("model").for_each(|model| models.add(model));
    let mut span = Span::default();
    values().for_each(|line| span.include(line.get("timestamp")));
    Session {
        id: id.to_owned(),
        start: span.start(),
        end: span.end(),
        models,
        provider: of_messages("provider").next_back().map(str::to_owned),
        cli_name: Some("pi".to_owned()),
        working_dir: text("cwd").map(str::to_owned),
        ..Session::default()
    }
}

fn entry(line: Value, kind: &str, account: &mut TranslationAccount) -> Entry {
    let mut line = match Native::of(line) {
        Ok(line) => line,
        Err(value) => return Entry::event_of_value("non-object", value),
    };
    let time = line.take("timestamp");
    let message = line.get(MESSAGE).and_then(|message| message.get("role")?.as_str()).map(str::to_owned);
    let is_message = line.text("type") == Some(MESSAGE);
    let entry = match message.as_deref().filter(|_| is_message) {
        Some(USER) => message_entry(USER, &mut line, account),
        Some(ASSISTANT) => message_entry(ASSISTANT, &mut line, account),
        Some("toolResult") => tool_result(&mut line),
        _ => return event(line, kind).at(time),
    };
    line.take("type");
    let (id, parent) = (line.take_text("id"), line.take_text("parentId"));
    entry.with("id", id).with("parent-id", parent).at(time).native(line)
}

fn event(mut line: Native, kind: &str) -> Entry {
    line.drop_if("type", Some(kind));
    let id = if kind == SESSION { None } else { line.take_text("id") };
    Entry::event(kind, line.rest()).with("id", id)
}

fn message_entry(kind: &'static str, line: &mut Native, account: &mut TranslationAccount) -> Entry {
    let mut message = line.take_object(MESSAGE).unwrap_or_default();
    message.take("role");
    let blocks = Blocks::of(message.take("content"), account);
    let model = if kind == ASSISTANT { message.take_text("model") } else { None };
    let usage = message.get("usage").map(token_usage).unwrap_or_default();
    line.put_object(MESSAGE, message.rest());
    Entry::message(kind, blocks.content).with("model-id", model).usage(usage).children(blocks.entries)
}

fn tool_result(line: &mut Native) -> Entry {
    let mut message = line.take_object(MESSAGE).unwrap_or_default();
    message.take("role");
    let (output, call) = (message.take("content"), message.take_text("toolCallId"));
    let is_error = message.get("isError").and_then(Value::as_bool);
    if is_error.is_some() {
        message.take("isError");
    }
    line.put_object(MESSAGE, message.rest());
    Entry::tool_result(output).with("call-id", call).with("is-error", is_error)
}

fn token_usage(usage: &Value) -> TokenUsage {
    let cached = count(usage, "cacheRead");
    let cost = usage.get("cost").and_then(|cost| cost.get("total")?.as_number()).cloned();
    TokenUsage {
        input: sum([count(usage, "input"), cached, count(usage, "cacheWrite")]),
        cached,
        output: count(usage, "output"),
        reasoning: None,
        total: count(usage, "totalTokens"),
        cost,
    }
}
