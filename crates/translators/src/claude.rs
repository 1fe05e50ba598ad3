//! Reader for Claude Code: `~/.claude/projects/FOLDER/SESSION.jsonl`, one object a line.
//!
//! Lines of type `user` and `assistant` are messages; all others are events. Claude Code writes one message of the
//! API as several lines, each with one content block and the same usage, so the usage is placed on the last of them
//! only.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::account::{NativeOutcome, TranslationAccount};
use crate::blocks::{self, Blocks};
use crate::entry::{ASSISTANT, Entry, SYSTEM_EVENT, TOOL_CALL, TOOL_RESULT, USER};
use crate::envelope;
use crate::lines::{self, Line};
use crate::native::Native;
use crate::session::{Models, Session};
use crate::source::SourceFile;
use crate::usage::{TokenUsage, count, sum};

/// The model of messages that Claude Code itself writes.
const SYNTHETIC: &str = "<synthetic>";

/// Returns whether a line is one of Claude Code's.
pub(crate) fn recognizes(line: &Value) -> bool {
    let has = |name: &str| line.get(name).is_some();
    has("type") && (has("sessionId") || has("leafUuid") || has("uuid") || has("messageId"))
}

/// Reads the session of a file.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Session> {
    let lines = lines::read(file, account);
    if lines.is_empty() {
        return Vec::new();
    }
    let mut session = header(file, &lines, account);
    let with_usage = last_of_each_message(&lines);
    for (position, Line { value, .. }) in lines.into_iter().enumerate() {
        let kind = envelope::native_type(&value);
        let entries = entries(value, with_usage.contains(&position), &session, account);
        let kept = entries.first().map_or(SYSTEM_EVENT, Entry::kind);
        account.entry(kind, NativeOutcome::Kept(kept));
        session.entries.extend(entries);
    }
    vec![session]
}

fn header(file: &SourceFile, lines: &[Line], account: &mut TranslationAccount) -> Session {
    let mut models = Models::default();
    for line in lines {
        let model = line.value.pointer("/message/model").and_then(Value::as_str);
        model.filter(|model| *model != SYNTHETIC).into_iter().for_each(|model| models.add(model));
    }
    let provider = models.last().filter(|model| model.starts_with("claude")).map(|_| "anthropic".to_owned());
    Session { models, provider, ..envelope::session("claude-code", file, lines, account) }
}

/// Returns the positions of the lines that carry the usage: the last of each message of the API.
fn last_of_each_message(lines: &[Line]) -> BTreeSet<usize> {
    let mut last = BTreeMap::new();
    for (position, line) in lines.iter().enumerate() {
        let Some(message) = line.value.get("message").filter(|message| message.get("usage").is_some()) else {
            continue;
        };
        let id = message.get("id").and_then(Value::as_str);
        let request = line.value.get("requestId").and_then(Value::as_str);
        // Lines without a message identifier are messages of their own.
        let alone = id.is_none().then_some(position);
        last.insert((id, request, alone), position);
    }
    last.into_values().collect()
}

fn entries(line: Value, with_usage: bool, session: &Session, account: &mut TranslationAccount) -> Vec<Entry> {
    let mut line = match Native::of(line) {
        Ok(line) => line,
        Err(value) => return vec![Entry::event_of_value("non-object", value)],
    };
    match line.text("type") {
        Some(USER | ASSISTANT) if line.get("message").is_some_and(Value::is_object) => {
            envelope::drop_repeated(&mut line, session);
            message(line, with_usage, account)
        }
        Some("tool_use") => vec![lone_block(line, TOOL_CALL)],
        Some("tool_result") => vec![lone_block(line, TOOL_RESULT)],
        _ => vec![envelope::event(line)],
    }
}

fn message(mut line: Native, with_usage: bool, account: &mut TranslationAccount) -> Vec<Entry> {
    let kind = if line.take_text("type").as_deref() == Some(ASSISTANT) { ASSISTANT } else { USER };
    let mut message = line.take_object("message").unwrap_or_default();
    message.drop_if("role", Some(kind));
    let blocks = Blocks::of(message.take("content"), account);
    let model = if kind == ASSISTANT { message.take_text("model") } else { None };
    let usage = message.get("usage").filter(|_| with_usage).map(token_usage).unwrap_or_default();
    line.put_object("message", message.rest());
    envelope::entries(kind, blocks, line, |entry| entry.with("model-id", model).usage(usage))
}

fn token_usage(usage: &Value) -> TokenUsage {
    let cached = count(usage, "cache_read_input_tokens");
    let input = sum([count(usage, "input_tokens"), count(usage, "cache_creation_input_tokens"), cached]);
    let output = count(usage, "output_tokens");
    TokenUsage { input, cached, output, total: sum([input, output]), ..TokenUsage::default() }
}

/// Makes an entry of a block that is a line of its own, as old versions wrote them.
fn lone_block(mut line: Native, kind: &str) -> Entry {
    line.take("type");
    let (id, time) = (line.take_text("uuid"), line.take("timestamp"));
    let entry = match kind {
        TOOL_CALL => blocks::tool_call(line),
        _ => {
            let output = line.take("output");
            let entry = blocks::tool_result(line);
            if output.is_some() { entry.with("output", output) } else { entry }
        }
    };
    entry.with("id", id).at(time)
}
