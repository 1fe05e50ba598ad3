//! Session files: single files, databases, storage trees of OpenCode, and folders with sources of any format.

use std::fs;
use std::path::{Path, PathBuf};

use jose::json::{Limits, MAX_DEPTH, TextRules, check_rules};
use session_databases::DatabaseError;
use translators::limits::SOURCE_BYTES;
use translators::{SessionSource, SourceFile};

use super::writing::{WATCH_LOCK, WATCH_STATE};
use crate::console::{Exit, Failure, files};

/// The note about a link in a folder.
const LINK: &str = "a link, which is not followed";
/// The note about something else in a folder that is no file: to read it may take forever.
const SPECIAL: &str = "a pipe, socket or device, which is not read";

/// Limits of a last line. It may nest deeper than a native entry may, as the digest of such a line is recorded.
const LAST_LINE: Limits = Limits { bytes: SOURCE_BYTES, depth: MAX_DEPTH };

/// The folders of OpenCode's storage.
const STORAGE: [&str; 2] = ["session", "message"];

/// The folder of Cursor's transcripts.
const TRANSCRIPTS: &str = "agent-transcripts";
/// Names of the databases of OpenCode and of Cursor's composer.
const DATABASES: [&str; 2] = ["opencode.db", "state.vscdb"];

/// A session file or storage tree with the name of its records.
pub struct NamedSource {
    /// The path that was given or found.
    pub path: PathBuf,
    /// The beginning of the names of its records.
    pub name: String,
    /// True if it was named, false if it was found in a folder.
    pub named: bool,
}

/// The sources at a path.
pub struct Found {
    pub sources: Vec<NamedSource>,
    /// What may be a source below a folder and is passed over, with the reason.
    pub passed_over: Vec<(PathBuf, &'static str)>,
    /// A failure for each folder that cannot be read.
    pub unreadable: Vec<Failure>,
}

impl NamedSource {
    /// Reads the source.
    pub fn read(&self) -> Result<SessionSource, Failure> {
        if session_databases::is_database(&self.path) {
            return session_databases::read(&self.path)
                .map_err(|error| unusable_database(&self.path, &error));
        }
        if !self.path.is_dir() {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            return Ok(SessionSource::file(name, files::read(&self.path)?));
        }
        let below = Below::folder(&self.path, |_| false);
        if let Some(failure) = below.unreadable.into_iter().next() {
            return Err(failure);
        }
        let files = below.files.into_iter().filter(|path| !is_output(path)).map(|path| {
            let name = relative(&path, &self.path);
            Ok(SourceFile { path: name, bytes: files::read(&path)? })
        });
        Ok(SessionSource::tree(files.collect::<Result<_, Failure>>()?))
    }
}

fn unusable_database(path: &Path, error: &DatabaseError) -> Failure {
    let failure =
        Failure::new(Exit::Failure, "database-unusable", format!("{} cannot be imported", path.display()))
            .fact("because", error.to_string());
    match error {
        DatabaseError::TooLarge { .. } => failure.hint("export single sessions, e.g. with `opencode export`"),
        _ => failure,
    }
}

/// Returns a source without the lines that are still being written: what follows the last line break of each file of
/// lines, unless it is an object already.
pub fn complete_lines(source: &SessionSource) -> SessionSource {
    let files = source.files().iter().map(|file| {
        let end = if file.path.ends_with(".jsonl") { complete_bytes(&file.bytes) } else { file.bytes.len() };
        SourceFile { path: file.path.clone(), bytes: file.bytes[..end].to_vec() }
    });
    let files = files.collect();
    if source.is_rows() { SessionSource::rows(files) } else { SessionSource::tree(files) }
}

/// Returns the length of a file's complete lines. The last line of a session may have no line break for good.
fn complete_bytes(bytes: &[u8]) -> usize {
    let lines = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let is_object = bytes[lines..].starts_with(b"{")
        && check_rules(&bytes[lines..], LAST_LINE, TextRules::Syntax).is_ok();
    if is_object { bytes.len() } else { lines }
}

/// Returns the sources at a path: the file, the storage tree, or the session files and storage trees below a folder.
pub fn find(path: &Path) -> Found {
    if !path.is_dir() || is_storage(path) {
        let stem =
            if files::is_stream(path) { "stdin".as_ref() } else { path.file_stem().unwrap_or_default() };
        let name = stem.to_string_lossy().into_owned();
        let source = NamedSource { path: path.to_owned(), name, named: true };
        return Found { sources: vec![source], passed_over: Vec::new(), unreadable: Vec::new() };
    }
    let Below { mut files, apart: storages, mut passed_over, unreadable } = Below::folder(path, is_storage);
    files.retain(|file| is_session(file));
    passed_over.retain(|(path, _)| is_session(path) || path.is_dir());
    files.extend(storages);
    files.sort();
    let named = |source: PathBuf| {
        let name = relative(&source.with_extension(""), path).replace('/', "-");
        NamedSource { path: source, name, named: false }
    };
    Found { sources: files.into_iter().map(named).collect(), passed_over, unreadable }
}

fn is_storage(folder: &Path) -> bool {
    STORAGE.iter().all(|name| folder.join(name).is_dir())
}

/// Returns whether a file of a folder may hold sessions: by its ending, or by its name or folder if the ending is common.
fn is_session(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("json" | "jsonl") => !is_output(file),
        Some("txt") => file.parent().is_some_and(|folder| folder.ends_with(TRANSCRIPTS)),
        _ => DATABASES.iter().any(|name| file.ends_with(name)),
    }
}

/// Returns whether a file is one that these commands write: a record, its statement, or the state of `--watch`.
fn is_output(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_record = name.ends_with(".record.json") || name.ends_with(".record.json.cose");
    is_record || name == WATCH_STATE || name == WATCH_LOCK
}

/// The files below a folder.
#[derive(Default)]
struct Below {
    /// Ordered by path.
    files: Vec<PathBuf>,
    /// Folders whose files are not among them.
    apart: Vec<PathBuf>,
    /// Links, pipes, sockets and devices, ordered by path.
    passed_over: Vec<(PathBuf, &'static str)>,
    /// A failure for each folder that cannot be read.
    unreadable: Vec<Failure>,
}

impl Below {
    /// Collects the files below a folder, without those in folders for which `is_apart` holds.
    fn folder(folder: &Path, is_apart: fn(&Path) -> bool) -> Below {
        let mut below = Below::default();
        below.add(folder, is_apart);
        below.files.sort();
        below.passed_over.sort();
        below
    }

    fn add(&mut self, folder: &Path, is_apart: fn(&Path) -> bool) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable.push(files::unreadable(folder, &error)),
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                Ok((path, kind)) if kind.is_dir() && is_apart(&path) => self.apart.push(path),
                Ok((path, kind)) if kind.is_dir() => self.add(&path, is_apart),
                Ok((path, kind)) if kind.is_file() => self.files.push(path),
                Ok((path, kind)) => {
                    self.passed_over.push((path, if kind.is_symlink() { LINK } else { SPECIAL }));
                }
                Err(error) => self.unreadable.push(files::unreadable(folder, &error)),
            }
        }
    }
}

fn relative(path: &Path, root: &Path) -> String {
    let steps = path.strip_prefix(root).unwrap_or(path).iter().map(|step| step.to_string_lossy());
    steps.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_line_that_nests_too_deep_for_a_record_counts() {
        let bytes = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
        let source = complete_lines(&SessionSource::file("s.jsonl", bytes.as_str()));
        assert_eq!(source.bytes(), bytes.len());
    }

    #[test]
    fn a_last_line_without_a_line_break_counts_as_soon_as_it_is_an_object() {
        for (bytes, complete) in [
            ("{\"a\":1}\n{\"b\":{}}", "{\"a\":1}\n{\"b\":{}}"),
            ("{\"a\":1}\n{\"b\":{}", "{\"a\":1}\n"),
            ("{\"a\":1}\n12", "{\"a\":1}\n"),
            ("{\"a\":1}\n", "{\"a\":1}\n"),
            ("{\"a\":", ""),
            ("", ""),
        ] {
            let source = complete_lines(&SessionSource::file("s.jsonl", bytes));
            assert_eq!(source.files()[0].bytes, complete.as_bytes(), "{bytes}");
        }
    }
}
