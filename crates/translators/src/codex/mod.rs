//! Reader for Codex CLI: `$CODEX_HOME/sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`.
//!
//! A line is `{timestamp, type, payload}`; lines of old versions are the payload itself. `response_item` is the
//! conversation (`items`), `event_msg` what the user interface showed (`events`), and the rest describes the session.

mod events;
mod items;
mod outcomes;
mod usage;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::Entry;
use crate::lines::{self, Line};
use crate::native::Native;
use crate::session::{Models, Session, Vcs};
use crate::source::SourceFile;
use crate::time::Span;
use events::Echoes;
use outcomes::Outcomes;
use usage::Counter;

/// Returns whether a line is one of Codex's.
pub(crate) fn recognizes(line: &Value) -> bool {
    let kind = line.get("type").and_then(Value::as_str);
    match kind {
        Some("session_meta" | "response_item" | "event_msg" | "turn_context") => {
            line.get("payload").is_some()
        }
        Some("function_call" | "function_call_output" | "function_result") => is_bare(line),
        // Other agents write messages in which an object has the role.
        Some("message") => is_bare(line) && line.get("role").is_some(),
        Some("compacted" | "world_state") => line.get("payload").is_some(),
        None => line.get("role").is_some() && line.get("created_at").is_some(),
        _ => false,
    }
}

/// Returns whether a line has no envelope.
fn is_bare(line: &Value) -> bool {
    line.get("payload").is_none() && line.get("sessionId").is_none()
}

/// Reads the session of a file.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Session> {
    let lines = lines::read(file, account);
    if lines.is_empty() {
        return Vec::new();
    }
    let mut session = header(file, &lines);
    for other in other_sessions(&lines, &session.id) {
        account.remark_other_session(&file.path, other);
    }
    let mut reader = LineReader {
        echoes: Echoes::of(&lines),
        outcomes: Outcomes::of(&lines),
        counter: Counter::default(),
        account,
    };
    session.entries = lines.into_iter().filter_map(|line| reader.entry(line.value)).collect();
    vec![session]
}

/// Returns the other sessions that a file describes: those that this one continues, or that were joined with it.
fn other_sessions<'l>(lines: &'l [Line], id: &str) -> BTreeSet<&'l str> {
    let ids = of_type(lines, "session_meta").filter_map(|meta| meta.get("id")?.as_str());
    ids.filter(|other| *other != id).collect()
}

/// Returns the payloads of the lines of a type.
fn of_type<'l>(lines: &'l [Line], kind: &'static str) -> impl Iterator<Item = &'l Value> {
    let matching =
        lines.iter().filter(move |line| line.value.get("type").and_then(Value::as_str) == Some(kind));
    matching.filter_map(|line| line.value.get("payload"))
}

fn header(file: &SourceFile, lines: &[Line]) -> Session {
    let of_type = |kind: &'static str| of_type(lines, kind);
    let meta = of_type("session_meta").next().unwrap_or(&Value::Null);
    let text = |name: &str| meta.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut models = Models::default();
    for turn in of_type("turn_context").chain(lines.iter().map(|line| &line.value)) {
        turn.get("model").and_then(Value::as_str).into_iter().for_each(|model| models.add(model));
    }
    let turn_folder =
        || of_type("turn_context").find_map(|turn| turn.get("cwd")?.as_str().map(str::to_owned));
    let mut span = Span::default();
    lines.iter().for_each(|line| span.include(time_of(&line.value)));
    Session {
        id: text("id").unwrap_or_else(|| file.stem().to_owned()),
        start: span.start(),
        end: span.end(),
        models,
        provider: text("model_provider"),
        cli_name: Some("codex-cli".to_owned()),
        cli_version: text("cli_version"),
        working_dir: text("cwd").or_else(turn_folder),
        vcs: meta.get("git").filter(|git| git.is_object()).map(vcs),
        ..Session::default()
    }
}

fn time_of(line: &Value) -> Option<&Value> {
    line.get("timestamp").or_else(|| line.get("created_at"))
}

fn vcs(git: &Value) -> Vcs {
    let text = |name: &str| git.get(name).and_then(Value::as_str).map(str::to_owned);
    Vcs { revision: text("commit_hash"), branch: text("branch"), repository: text("repository_url") }
}

struct LineReader<'a> {
    echoes: Echoes,
    outcomes: Outcomes,
    counter: Counter,
    account: &'a mut TranslationAccount,
}

impl LineReader<'_> {
    /// Makes the entry of a line; `None` if the line is an echo of another one.
    fn entry(&mut self, line: Value) -> Option<Entry> {
        let mut line = match Native::of(line) {
            Ok(line) => line,
            Err(value) => {
                return self.kept("non-object".to_owned(), Entry::event_of_value("non-object", value));
            }
        };
        let time = line.take("timestamp").or_else(|| line.take("created_at"));
        let Some(payload) = line.take_object("payload") else {
            return self.bare(line, time);
        };
        let kind = line.take_text("type").unwrap_or_else(|| "untyped".to_owned());
        let inner = payload.text("type").unwrap_or_default().to_owned();
        let name = if inner.is_empty() { kind.clone() } else { format!("{kind}/{inner}") };
        let entry = match kind.as_str() {
            "response_item" => self.outcomes.complete(items::entry(payload, &name)),
            "event_msg" if self.echoes.has(&inner, &payload) => {
                self.account.entry(name, NativeOutcome::Skipped("echo of a response item"));
                return None;
            }
            "event_msg" if inner == "token_count" => self.counter.entry(payload),
            "event_msg" => events::entry(payload),
            _ => Entry::event(kind, payload.rest()),
        };
        self.kept(name, entry.at(time).native(line))
    }

    /// Makes the entry of a line without an envelope.
    fn bare(&mut self, line: Native, time: Option<Value>) -> Option<Entry> {
        let kind = line.text("type").or(line.text("role")).unwrap_or("untyped").to_owned();
        let entry = items::entry(line, &kind).at(time);
        self.kept(kind, entry)
    }

    fn kept(&mut self, name: String, entry: Entry) -> Option<Entry> {
        self.account.entry(name, NativeOutcome::Kept(entry.kind()));
        Some(entry)
    }
}
