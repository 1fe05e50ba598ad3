//! Paths of changed files, relative to the root of their repository (section 3.9 of the draft).

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::session::Session;

/// The folders that paths of a session are read against.
pub(super) struct Folders {
    root: Root,
    working: Option<String>,
}

/// The folder that paths of the record are relative to.
enum Root {
    Folder(String),
    /// The SHA-256 digest of the folder's path, in hex, which is all that Gemini CLI states.
    Digest(String),
    Unknown,
}

impl Folders {
    /// The folders of a session. Its root is the given one, else its working folder.
    pub fn of(session: &Session, root: Option<&str>) -> Folders {
        let working = session.working_dir.as_deref().map(with_slashes);
        let root = match (root.map(with_slashes).or_else(|| working.clone()), &session.root_digest) {
            (Some(folder), _) => Root::Folder(folder),
            (None, Some(digest)) => Root::Digest(digest.clone()),
            (None, None) => Root::Unknown,
        };
        Folders { root, working }
    }

    /// Changes the folder that relative paths are read against.
    pub fn enter(&mut self, folder: &str) {
        self.working = Some(joined(self.working.as_deref(), folder));
    }

    /// Returns the path relative to the root; `None` if it is outside, or one of them is not known.
    pub fn relative(&self, path: &str) -> Option<String> {
        if path.is_empty() {
            return None;
        }
        let path = joined(self.working.as_deref(), path);
        if !is_absolute(&path) {
            return plain(&path);
        }
        match &self.root {
            Root::Folder(root) => plain(path.strip_prefix(root.as_str())?.strip_prefix('/')?),
            Root::Digest(digest) => below_digest(&path, digest).and_then(plain),
            Root::Unknown => None,
        }
    }
}

/// Returns a path with the folder that it is read against before it, if it is relative.
pub(super) fn joined(folder: Option<&str>, path: &str) -> String {
    let slashed = with_slashes(path);
    match folder {
        // Without its last slash a root such as `/` does not look absolute.
        Some(folder) if !is_absolute(path) && !is_absolute(&slashed) => {
            format!("{}/{slashed}", with_slashes(folder))
        }
        _ => slashed,
    }
}

/// Returns what follows the folder whose path has this digest.
fn below_digest<'p>(path: &'p str, digest: &str) -> Option<&'p str> {
    let ends = path.match_indices('/').filter(|(at, _)| *at > 0);
    let mut folders = ends.map(|(at, _)| (&path[..at], &path[at + 1..]));
    folders
        .find(|(folder, _)| HEXLOWER.encode(&Sha256::digest(folder.as_bytes())) == digest)
        .map(|(_, rest)| rest)
}

/// Returns a path of Windows with the separators of others, and without one at the end. Editors write the letter of a drive in
/// either case, so it becomes a capital.
fn with_slashes(path: &str) -> String {
    let starts_at_a_drive = starts_at_a_drive(path);
    let is_windows = starts_at_a_drive || !path.contains('/');
    let mut path = if is_windows { path.replace('\\', "/") } else { path.to_owned() };
    if starts_at_a_drive && let Some(drive) = path.get_mut(..1) {
        drive.make_ascii_uppercase();
    }
    path.trim_end_matches('/').to_owned()
}

pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || starts_at_a_drive(path)
}

fn starts_at_a_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}

/// Resolves the steps `.` and `..`; `None` if the path leaves the root or cannot be in a record.
fn plain(path: &str) -> Option<String> {
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()?),
            step => steps.push(step),
        }
    }
    let path = steps.join("/");
    (!path.is_empty() && !path.contains(['\0', '\\'])).then_some(path)
}
