//! The file of a session: the one that the event names, if it is below the agent's folder, or the one that bears the
//! session's name in the place where the agent keeps its sessions.

use std::fs;
use std::path::{Path, PathBuf};

use super::agent::CodingAgent;
use super::event::SessionEvent;
use crate::console::{Exit, Failure, files};

/// Depth of Codex's folder of sessions: year, month, day.
const CODEX_DEPTH: usize = 3;

/// Finds the session's file, and returns its path without links.
///
/// # Errors
/// Code `hook-input` if the event names a file elsewhere, `session-not-found` if there is none.
pub fn find(agent: CodingAgent, event: &SessionEvent) -> Result<PathBuf, Failure> {
    let folder = agent.folder().ok_or_else(|| not_found(agent, event))?;
    let root = fs::canonicalize(&folder).map_err(|error| files::unreadable(&folder, &error))?;
    let found = match &event.transcript {
        Some(path) => Some(path.clone()),
        None => search(agent, &root, &event.session),
    };
    let path = found.and_then(|path| fs::canonicalize(path).ok()).filter(|path| path.is_file());
    let path = path.ok_or_else(|| not_found(agent, event))?;
    match path.starts_with(&root) {
        true => Ok(path),
        false => Err(Failure::new(Exit::Refused, "hook-input", "the event names another user's file")
            .fact("file", path.display().to_string())
            .fact("expected below", root.display().to_string())),
    }
}

fn search(agent: CodingAgent, root: &Path, session: &str) -> Option<PathBuf> {
    match agent {
        CodingAgent::ClaudeCode => {
            let name = format!("{session}.jsonl");
            children(&root.join("projects"))
                .into_iter()
                .map(|project| project.join(&name))
                .find(|path| path.is_file())
        }
        CodingAgent::Codex => ending(&root.join("sessions"), &format!("-{session}.jsonl"), CODEX_DEPTH),
        CodingAgent::Cursor => {
            let names = ["jsonl", "txt"].map(|ending| format!("{session}.{ending}"));
            let transcripts = children(&root.join("projects")).into_iter();
            let folders = transcripts.map(|project| project.join("agent-transcripts"));
            let folders = folders.flat_map(|folder| [folder.join(session), folder]);
            folders.flat_map(|folder| names.clone().map(|name| folder.join(name))).find(|path| path.is_file())
        }
    }
}

/// Finds a file whose name ends so, in a folder or at most `depth` below it, the newest name first.
fn ending(folder: &Path, end: &str, depth: usize) -> Option<PathBuf> {
    let mut entries = children(folder);
    entries.sort_by(|a, b| b.cmp(a));
    entries.into_iter().find_map(|path| match path.is_dir() {
        true if depth > 0 => ending(&path, end, depth - 1),
        true => None,
        false => Some(path).filter(|path| path.to_string_lossy().ends_with(end)),
    })
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn not_found(agent: CodingAgent, event: &SessionEvent) -> Failure {
    let what = format!("{} has no file of session {}", agent.name(), event.session);
    Failure::new(Exit::NotFound, "session-not-found", what)
}
