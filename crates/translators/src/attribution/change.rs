//! Changes of files, in the forms in which tools state them.

use super::paths::{is_absolute, joined};

/// A change of one file.
#[derive(Clone, Debug)]
pub(super) struct FileChange {
    /// The path as the tool names it; `None` if the folder that the tool reads it against is not known.
    pub path: Option<String>,
    pub change: Change,
}

/// What happens to the file.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// The file gets this content.
    Content(String),
    /// A text of the file is replaced: its first occurrence, or all.
    Replacement { old: String, new: String, all: bool },
    /// Lines are removed and added.
    Hunks(Vec<Hunk>),
    /// The file has this content after the changes before. Nothing is attributed.
    Result(String),
    /// The file is renamed; `None` if the folder that the tool reads the new name against is not known.
    MovedTo(Option<String>),
    /// The file is deleted.
    Deleted,
    /// Lines are changed, and the session does not state which.
    Unstated,
}

/// A group of lines of a diff.
#[derive(Clone, Debug, Default)]
pub(super) struct Hunk {
    /// Number of lines before the group in the changed file; `None` if the diff does not state it.
    pub before: Option<u64>,
    /// A line that the group follows.
    pub context: Option<String>,
    /// True if the group is at the end of the file.
    pub is_last: bool,
    pub lines: Vec<DiffLine>,
}

impl FileChange {
    /// A change of the file with this path.
    pub fn of(path: String, change: Change) -> FileChange {
        FileChange { path: Some(path), change }
    }

    /// The change with its paths read against a folder. `None` is a folder that is not known, an empty one the same folder as
    /// before.
    pub fn in_folder(self, folder: Option<&str>) -> FileChange {
        let seen = |path: String| match folder {
            None if !is_absolute(&path) => None,
            Some(folder) if !folder.is_empty() && !path.is_empty() => Some(joined(Some(folder), &path)),
            _ => Some(path),
        };
        let change = match self.change {
            Change::MovedTo(to) => Change::MovedTo(to.and_then(seen)),
            change => change,
        };
        FileChange { path: self.path.and_then(seen), change }
    }
}

/// A line of a diff, without its line break.
#[derive(Clone, Debug)]
pub(super) enum DiffLine {
    Kept(String),
    Removed(String),
    Added(String),
}

impl DiffLine {
    /// Parses a line with its sign. Some tools leave out the space of an empty line that is kept.
    pub fn parse(line: &str) -> Option<DiffLine> {
        let mut chars = line.chars();
        let sign = chars.next();
        let text = chars.as_str().to_owned();
        match sign {
            Some(' ') | None => Some(DiffLine::Kept(text)),
            Some('-') => Some(DiffLine::Removed(text)),
            Some('+') => Some(DiffLine::Added(text)),
            Some(_) => None,
        }
    }

    /// The line's text in the file before the change; `None` if it is new.
    pub fn before(&self) -> Option<&str> {
        match self {
            DiffLine::Kept(text) | DiffLine::Removed(text) => Some(text),
            DiffLine::Added(_) => None,
        }
    }

    /// The line's text in the changed file; `None` if it was removed.
    pub fn after(&self) -> Option<&str> {
        match self {
            DiffLine::Kept(text) | DiffLine::Added(text) => Some(text),
            DiffLine::Removed(_) => None,
        }
    }
}
