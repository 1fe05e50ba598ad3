//! Lines in the form that Claude Code writes and Qwen Code has taken over: an object with `uuid`, `parentUuid`, `sessionId`,
//! `timestamp`, `type`, and what describes the session (`cwd`, `version`, `gitBranch`).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::account::TranslationAccount;
use crate::blocks::Blocks;
use crate::entry::{Entry, USER};
use crate::lines::Line;
use crate::native::Native;
use crate::session::{Session, Vcs};
use crate::source::SourceFile;
use crate::time::Span;

/// Returns the type of a line with its subtype.
pub(crate) fn native_type(line: &Value) -> String {
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    joined_type(text("type"), text("subtype"))
}

fn joined_type(kind: Option<&str>, subtype: Option<&str>) -> String {
    match (kind, subtype) {
        (Some(kind), Some(subtype)) => format!("{kind}/{subtype}"),
        (Some(kind), None) => kind.to_owned(),
        (None, _) => "untyped".to_owned(),
    }
}

/// Returns a session of `program` with what its lines say about it, but without models and entries.
pub(crate) fn session(
    program: &str,
    file: &SourceFile,
    lines: &[Line],
    account: &mut TranslationAccount,
) -> Session {
    let texts = |name: &'static str| {
        lines.iter().filter_map(move |line| line.value.get(name)?.as_str().map(str::to_owned))
    };
    let mut span = Span::default();
    lines.iter().for_each(|line| span.include(line.value.get("timestamp")));
    let branch = texts("gitBranch").find(|branch| !branch.is_empty());
    Session {
        id: session_id(file, texts("sessionId"), account),
        start: span.start(),
        end: span.end(),
        cli_name: Some(program.to_owned()),
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

/// Removes members that only repeat what the session says.
pub(crate) fn drop_repeated(line: &mut Native, session: &Session) {
    line.drop_if("sessionId", Some(&session.id));
    line.drop_if("cwd", session.working_dir.as_deref());
    line.drop_if("version", session.cli_version.as_deref());
    line.drop_if("gitBranch", session.vcs.as_ref().and_then(|vcs| vcs.branch.as_deref()));
}

/// Makes the entries of a line with these blocks: a message with children or, if there is nothing but results, the results.
/// `complete` adds to the message what is not about its blocks.
pub(crate) fn entries(
    kind: &'static str,
    blocks: Blocks,
    mut line: Native,
    complete: impl FnOnce(Entry) -> Entry,
) -> Vec<Entry> {
    let (id, parent, time) = (line.take_text("uuid"), line.take_text("parentUuid"), line.take("timestamp"));
    if kind == USER && blocks.is_results_only() {
        return results(blocks.entries, id, parent, time, line);
    }
    let entry = complete(Entry::message(kind, blocks.content)).with("id", id).with("parent-id", parent);
    vec![entry.at(time).native(line).children(blocks.entries)]
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

/// Makes an event of a line.
pub(crate) fn event(mut line: Native) -> Entry {
    let kind = line.take_text("type");
    let subtype = kind.as_ref().and_then(|_| line.take_text("subtype"));
    let kind = joined_type(kind.as_deref(), subtype.as_deref());
    let (id, time) = (line.take_text("uuid"), line.take("timestamp"));
    Entry::event(kind, line.rest()).with("id", id).at(time)
}
