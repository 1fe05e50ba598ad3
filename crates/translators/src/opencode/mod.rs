//! Reader for OpenCode, whose storage is a tree of JSON files (`session`, `message` and `part`), and since 1.2 an SQLite
//! database with a table of each.
//!
//! The objects may come as the files of the tree, one after another in one file, as `opencode export` writes them, or as
//! rows (`database`). All four become the same [`Objects`]; one session of these is one record.

mod database;
mod message;
mod objects;
mod part;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::{Entry, SYSTEM_EVENT};
use crate::native::Native;
use crate::session::{Models, Session, Vcs};
use crate::source::SessionSource;
use objects::{Message, Objects};

/// Returns whether a document is an export, or one of the objects of the storage.
pub(crate) fn recognizes(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    let export = has("info") && has("messages");
    export || has("sessionID") || has("messageID") || has("projectID")
}

/// Reads the sessions of a storage tree, of concatenated objects, or of an export.
pub(crate) fn read(source: &SessionSource, account: &mut TranslationAccount) -> Vec<Session> {
    let mut objects = Objects::read(source, account);
    let sessions = std::mem::take(&mut objects.sessions);
    let in_git = projects_in_git(&objects.unassigned);
    let mut found: Vec<Session> = Vec::new();
    for native in sessions {
        let messages = objects.messages.remove(&native.id).unwrap_or_default();
        let others = objects.others.remove(&native.id).unwrap_or_default();
        account.entry("session", NativeOutcome::Kept("session"));
        let is_in_git = native.members.text("projectID").is_some_and(|project| in_git.contains(project));
        let mut session = session(native.id, native.members, &messages);
        session.vcs = is_in_git.then(Vcs::default);
        session.entries = messages.into_iter().map(|message| message::entry(message, account)).collect();
        session.entries.extend(others.into_iter().map(|(kind, other)| event(&kind, other, account)));
        found.push(session);
    }
    for (kind, other) in std::mem::take(&mut objects.unassigned) {
        match found.as_mut_slice() {
            [only] => only.entries.push(event(&kind, other, account)),
            _ => account.entry(kind, NativeOutcome::Skipped("belongs to no session of the source")),
        }
    }
    objects.orphans(account);
    found
}

/// Returns the identifiers of the projects that are in git, by their own objects.
fn projects_in_git(others: &[(String, Value)]) -> BTreeSet<String> {
    let is_in_git = |other: &&Value| other.get("worktree").is_some() && other["vcs"] == "git";
    let projects = others.iter().map(|(_, other)| other).filter(is_in_git);
    projects.filter_map(|project| project["id"].as_str().map(str::to_owned)).collect()
}

fn event(kind: &str, other: Value, account: &mut TranslationAccount) -> Entry {
    account.entry(kind, NativeOutcome::Kept(SYSTEM_EVENT));
    match Native::of(other) {
        Ok(other) => Entry::event(kind, other.rest()),
        Err(value) => Entry::event_of_value(kind, value),
    }
}

fn session(id: String, mut members: Native, messages: &[Message]) -> Session {
    let mut models = Models::default();
    let mut provider = None;
    for message in messages {
        let stated = |name: &str| {
            let inner = || message.object.get("model")?.get(name)?.as_str();
            message.object.text(name).or_else(inner).map(str::to_owned)
        };
        stated("modelID").into_iter().for_each(|model| models.add(&model));
        provider = stated("providerID").or(provider);
    }
    let mut times = members.take_object("time").unwrap_or_default();
    let (start, end) = (times.take_time("created"), times.take_time("updated"));
    members.put_object("time", times.rest());
    Session {
        id,
        start,
        end,
        models,
        provider,
        cli_name: Some("opencode".to_owned()),
        cli_version: members.take_text("version"),
        working_dir: members.take_text("directory"),
        native: members.rest(),
        ..Session::default()
    }
}

/// Takes `time.NAME` of an object.
fn take_time(object: &mut Native, name: &str) -> Option<Value> {
    let mut times = object.take_object("time")?;
    let time = times.take(name);
    object.put_object("time", times.rest());
    time
}
