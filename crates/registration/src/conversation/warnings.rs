//! What looks wrong in a record and is kept as a warning: the log records what the signer said.

use std::collections::HashSet;

use super::entries;
use super::node::Node;
use super::time::Timestamp;
use crate::limits::{CONVERSATION_WARNINGS, MAX_TOLD};

/// Soft findings, no more than a bound of them kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    kept: Vec<String>,
    total: usize,
}

impl Warnings {
    /// The first warnings, each `<what> at <JSON pointer>`.
    pub fn kept(&self) -> &[String] {
        &self.kept
    }

    /// How many there are in all.
    pub fn total(&self) -> usize {
        self.total
    }

    /// `place` is asked only for a warning that is kept.
    pub(super) fn add(&mut self, what: &str, place: impl FnOnce() -> String) {
        self.total += 1;
        if self.kept.len() < CONVERSATION_WARNINGS {
            let place: String = place().chars().take(MAX_TOLD).collect();
            self.kept.push(format!("{what} at {place}"));
        }
    }
}

/// Looks over a record that passed the walk.
pub(super) fn look(record: &Node<'_>, warnings: &mut Warnings) {
    if let Some(session) = record.get("session") {
        session_times(session, warnings);
    }
    if not_real(record, "created") {
        warnings.add("no-such-time", || "/created".to_owned());
    }
    repositories(record, warnings);
    links(record, warnings);
}

/// Addresses of repositories with a user or a password in them, often a token that works: the log would show it for ever.
fn repositories(record: &Node<'_>, warnings: &mut Warnings) {
    let environment = record.get("session").and_then(|session| session.get("environment"));
    let places = [(Some(record), "/vcs/repository"), (environment, "/session/environment/vcs/repository")];
    for (holder, pointer) in places {
        let repository = holder.and_then(|node| node.get("vcs")).and_then(|vcs| vcs.text("repository"));
        if repository.is_some_and(has_userinfo) {
            warnings.add("credentials-in-url", || pointer.to_owned());
        }
    }
}

/// Whether the authority of a URL names more than a host. The user that git needs for SSH is no secret.
fn has_userinfo(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else { return false };
    !(scheme == "ssh" && user == "git")
}

fn session_times(session: &Node<'_>, warnings: &mut Warnings) {
    for name in ["session-start", "session-end"] {
        if not_real(session, name) {
            warnings.add("no-such-time", || format!("/session/{name}"));
        }
    }
    if let (Some(start), Some(end)) = (time(session, "session-start"), time(session, "session-end"))
        && end < start
    {
        warnings.add("end-before-start", || "/session/session-end".to_owned());
    }
}

/// Parents, calls and results that should name one another.
fn links(record: &Node<'_>, warnings: &mut Warnings) {
    let (mut ids, mut calls) = (HashSet::new(), HashSet::new());
    entries::each(record, |path, entry| {
        ids.extend(entry.text("id"));
        if entry.text("type") == Some("tool-call")
            && let Some(call) = entry.text("call-id")
            && !calls.insert(call)
        {
            warnings.add("call-id-again", || path.pointer_to("call-id"));
        }
    });
    entries::each(record, |path, entry| {
        let kind = entry.text("type");
        if kind.is_some_and(|kind| matches!(kind, "user" | "assistant"))
            && entry.text("parent-id").is_some_and(|parent| !ids.contains(parent))
        {
            warnings.add("unknown-parent", || path.pointer_to("parent-id"));
        }
        if kind == Some("tool-result") && entry.text("call-id").is_none_or(|call| !calls.contains(call)) {
            warnings.add("result-without-call", || path.pointer());
        }
        if not_real(entry, "timestamp") {
            warnings.add("no-such-time", || path.pointer_to("timestamp"));
        }
    });
}

fn time(node: &Node<'_>, name: &str) -> Option<i128> {
    Timestamp::of(node.get(name)?)?.milliseconds()
}

/// Whether a time is given that never was: 30 February, or a second numbered 60 (D5).
fn not_real(node: &Node<'_>, name: &str) -> bool {
    node.get(name).and_then(Timestamp::of).is_some_and(|time| time.milliseconds().is_none())
}
