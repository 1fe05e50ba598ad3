//! Warnings about inconsistent records, which are admitted because the log records what was signed.

use std::collections::HashSet;

use super::entries;
use super::node::Node;
use super::time::Timestamp;
use crate::limits::{CONVERSATION_WARNINGS, MAX_DETAIL};

/// Warnings, of which [`CONVERSATION_WARNINGS`] are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    listed: Vec<String>,
    total: usize,
}

impl Warnings {
    /// The first warnings, each `<what> at <JSON pointer>`.
    pub fn listed(&self) -> &[String] {
        &self.listed
    }

    /// The number of warnings, including those not listed.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Adds a warning. `place` is called only if the warning is listed.
    pub(super) fn add(&mut self, what: &str, place: impl FnOnce() -> String) {
        self.total += 1;
        if self.listed.len() < CONVERSATION_WARNINGS {
            let place: String = place().chars().take(MAX_DETAIL).collect();
            self.listed.push(format!("{what} at {place}"));
        }
    }
}

/// Collects the warnings about a record that the walk over the CDDL has accepted.
pub(super) fn collect(record: &Node<'_>, warnings: &mut Warnings) {
    if let Some(session) = record.get("session") {
        session_times(session, warnings);
    }
    if not_real(record, "created") {
        warnings.add("no-such-time", || "/created".to_owned());
    }
    repositories(record, warnings);
    links(record, warnings);
}

/// Warns of repository URLs with a user or password, which are often valid tokens and would be published in the log.
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

/// Returns whether a URL's authority has userinfo. The user `git` with SSH is not a secret and does not count.
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

/// Warns of inconsistent references between parents, calls and results.
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

/// Returns whether a member is a time that does not exist: 30 February, or a second numbered 60 (D5).
fn not_real(node: &Node<'_>, name: &str) -> bool {
    node.get(name).and_then(Timestamp::of).is_some_and(|time| time.milliseconds().is_none())
}
