//! Transcripts with one object a line: `~/.cursor/projects/FOLDER/agent-transcripts/ID/ID.jsonl`.
//!
//! The lines have no identifiers, times, models or token counts. The session is named after the file.

use serde_json::Value;

use super::CLI_NAME;
use crate::account::{NativeOutcome, TranslationAccount};
use crate::blocks::Blocks;
use crate::entry::{ASSISTANT, Entry, SYSTEM_EVENT, USER};
use crate::lines;
use crate::native::Native;
use crate::session::Session;
use crate::source::SourceFile;

/// Returns whether a line is one of Cursor's.
pub(crate) fn recognizes(line: &Value) -> bool {
    let message = line.get("message").is_some_and(Value::is_object) && line.get("role").is_some();
    let ended = line.get("type").is_some_and(|kind| kind == "turn_ended");
    (message || ended) && line.get("sessionId").is_none() && line.get("timestamp").is_none()
}

/// Reads the session of a file.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Session> {
    let lines = lines::read(file, account);
    if lines.is_empty() {
        return Vec::new();
    }
    let mut session =
        Session { id: file.stem().to_owned(), cli_name: Some(CLI_NAME.to_owned()), ..Session::default() };
    for line in lines {
        let kind = native_type(&line.value).to_owned();
        let entries = entries(line.value, account);
        account.entry(kind, NativeOutcome::Kept(entries.first().map_or(SYSTEM_EVENT, Entry::kind)));
        session.entries.extend(entries);
    }
    vec![session]
}

fn native_type(line: &Value) -> &str {
    line.get("role").or(line.get("type")).and_then(Value::as_str).unwrap_or("untyped")
}

fn entries(line: Value, account: &mut TranslationAccount) -> Vec<Entry> {
    let mut line = match Native::of(line) {
        Ok(line) => line,
        Err(value) => return vec![Entry::event_of_value("non-object", value)],
    };
    let kind = match line.text("role") {
        Some(USER) => USER,
        Some(ASSISTANT) => ASSISTANT,
        _ => return vec![event(line)],
    };
    let Some(mut message) = line.take_object("message") else { return vec![event(line)] };
    line.take("role");
    let blocks = Blocks::of(message.take("content"), account);
    line.put_object("message", message.rest());
    if kind == USER && blocks.is_results_only() {
        let mut results = blocks.entries.into_iter();
        return results.next().map(|first| first.native(line)).into_iter().chain(results).collect();
    }
    vec![Entry::message(kind, blocks.content).native(line).children(blocks.entries)]
}

fn event(mut line: Native) -> Entry {
    let kind = line.take_text("type").unwrap_or_else(|| "untyped".to_owned());
    Entry::event(kind, line.rest())
}
