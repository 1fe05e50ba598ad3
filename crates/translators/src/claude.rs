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
use crate::lines::{self, Line};
use crate::native::Native;
use crate::session::{Models, Session, Vcs};
use crate::source::SourceFile;
use crate::time::Span;
use crate::usage::{TokenUsage, count, sum};

/// The model of messages that Claude Code itself writes.
const SYNTHETIC: &str = "<synthetic>";

/// Returns whether a line is one of Claude Code's. Lines of Qwen Code have the same members, but `parts` in place of the content.
pub(crate) fn recognizes(line: &Value) -> bool {
    let has = |name: &str| line.get(name).is_some();
    let is_of_qwen = has("systemPayload") || line.pointer("/message/parts").is_some();
    has("type") && (has("sessionId") || has("leafUuid") || has("uuid") || has("messageId")) && !is_of_qwen
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
        let kind = native_type(&value);
        let entries = entries(value, with_usage.contains(&position), &session, account);
        let kept = entries.first().map_or(SYSTEM_EVENT, Entry::kind);
        account.entry(kind, NativeOutcome::Kept(kept));
        session.entries.extend(entries);
    }
    vec![session]
}

fn native_type(line: &Value) -> String {
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    match (text("type"), text("subtype")) {
        (Some(kind), Some(subtype)) => format!("{kind}/{subtype}"),
        (Some(kind), None) => kind.to_owned(),
        (None, _) => "untyped".to_owned(),
    }
}

fn header(file: &SourceFile, lines: &[Line], account: &mut TranslationAccount) -> Session {
    let texts = |name: &'static str| {
        lines.iter().filter_map(move |line| line.value.get(name)?.as_str().map(str::to_owned))
    };
    let mut models = Models::default();
    for line in lines {
        let model = line.value.pointer("/message/model").and_then(Value::as_str);
        model.filter(|model| *model != SYNTHETIC).into_iter().for_each(|model| models.add(model));
    }
    let mut span = Span::default();
    lines.iter().for_each(|line| span.include(line.value.get("timestamp")));
    let provider = models.last().filter(|model| model.starts_with("claude")).map(|_| "anthropic".to_owned());
    let branch = texts("gitBranch").find(|branch| !branch.is_empty());
    Session {
        id: session_id(file, texts("sessionId"), account),
        start: span.start(),
        end: span.end(),
        models,
        provider,
        cli_name: Some("claude-code".to_owned()),
        cli_version: texts("version").next_back(),
        working_dir: texts("cwd").next(),
        vcs: branch.map(|branch| Vcs { branch: Some(branch), ..Vcs::default() }),
        ..Session::default()
    }
}

/// Returns the session's identifier: the one that the file is named after, else the first. A file of a resumed session
/// may repeat lines of another one.
fn session_id(
    file: &SourceFile,
    ids: impl Iterator<Item = String>,
    account: &mut TranslationAccount,
) -> String {
    let mut first = None;
    let mut all = BTreeSet::new();
    for id in ids {
        first.get_or_insert_with(|| id.clone());
        all.insert(id);
    }
    let stem = file.stem();
    let chosen = match all.contains(stem) {
        true => stem.to_owned(),
        false => first.unwrap_or_else(|| stem.to_owned()),
    };
    all.remove(&chosen);
    for other in all {
        account.remark_other_session(&file.path, &other);
    }
    chosen
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
            drop_repeated(&mut line, session);
            message(line, with_usage, account)
        }
        Some("tool_use") => vec![lone_block(line, TOOL_CALL)],
        Some("tool_result") => vec![lone_block(line, TOOL_RESULT)],
        _ => vec![event(line)],
    }
}

/// Removes members that only repeat what the session says.
fn drop_repeated(line: &mut Native, session: &Session) {
    line.drop_if("sessionId", Some(&session.id));
    line.drop_if("cwd", session.working_dir.as_deref());
    line.drop_if("version", session.cli_version.as_deref());
    line.drop_if("gitBranch", session.vcs.as_ref().and_then(|vcs| vcs.branch.as_deref()));
}

fn message(mut line: Native, with_usage: bool, account: &mut TranslationAccount) -> Vec<Entry> {
    let kind = if line.take_text("type").as_deref() == Some(ASSISTANT) { ASSISTANT } else { USER };
    let mut message = line.take_object("message").unwrap_or_default();
    message.drop_if("role", Some(kind));
    let blocks = Blocks::of(message.take("content"), account);
    let (id, parent, time) = (line.take_text("uuid"), line.take_text("parentUuid"), line.take("timestamp"));
    let model = if kind == ASSISTANT { message.take_text("model") } else { None };
    let usage = message.get("usage").filter(|_| with_usage).map(token_usage).unwrap_or_default();
    line.put_object("message", message.rest());
    if kind == USER && blocks.is_results_only() {
        return results(blocks.entries, id, parent, time, line);
    }
    let place = |entry: Entry| entry.with("id", id).with("parent-id", parent).at(time).native(line);
    let entry = Entry::message(kind, blocks.content).with("model-id", model).usage(usage);
    vec![place(entry).children(blocks.entries)]
}

/// Places the results of a line. They have its time and parent; the first has its identifier and the other native
/// members, and the others name the line as `uuid`, since identifiers are unique.
fn results(
    results: Vec<Entry>,
    id: Option<String>,
    parent: Option<String>,
    time: Option<Value>,
    line: Native,
) -> Vec<Entry> {
    let mut results =
        results.into_iter().map(|entry| entry.with("parent-id", parent.clone()).at(time.clone()));
    let first = results.next().map(|first| first.with("id", id.clone()).native(line));
    let others = results.map(|other| other.native_member("uuid", id.clone()));
    first.into_iter().chain(others).collect()
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

fn event(mut line: Native) -> Entry {
    let kind = line.take_text("type");
    let subtype = kind.as_ref().and_then(|_| line.take_text("subtype"));
    let kind = match (kind, subtype) {
        (Some(kind), Some(subtype)) => format!("{kind}/{subtype}"),
        (Some(kind), None) => kind,
        (None, _) => "untyped".to_owned(),
    };
    let (id, time) = (line.take_text("uuid"), line.take("timestamp"));
    Entry::event(kind, line.rest()).with("id", id).at(time)
}
