//! Session files: single files, the storage tree of OpenCode, and folders with files of any format.

use std::fs;
use std::path::{Path, PathBuf};

use translators::{SessionSource, SourceFile};

use crate::console::{Failure, files};

/// The folders of OpenCode's storage.
const STORAGE: [&str; 2] = ["session", "message"];

/// A session file or storage tree with the name of its records.
pub struct NamedSource {
    /// The path that was given or found.
    pub path: PathBuf,
    /// The beginning of the names of its records.
    pub name: String,
    /// True if it was named, and not merely found in a folder.
    pub named: bool,
}

impl NamedSource {
    /// Reads the source.
    pub fn read(&self) -> Result<SessionSource, Failure> {
        if !self.path.is_dir() {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            return Ok(SessionSource::file(name, files::read(&self.path)?));
        }
        let files = below(&self.path)?.into_iter().map(|path| {
            let name = relative(&path, &self.path);
            Ok(SourceFile { path: name, bytes: files::read(&path)? })
        });
        Ok(SessionSource::tree(files.collect::<Result<_, Failure>>()?))
    }
}

/// Returns a source without the lines that are still being written: what follows the last line break of each file of
/// lines.
pub fn complete_lines(source: &SessionSource) -> SessionSource {
    let files = source.files().iter().map(|file| {
        let end = match file.path.ends_with(".jsonl") {
            true => file.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            false => file.bytes.len(),
        };
        SourceFile { path: file.path.clone(), bytes: file.bytes[..end].to_vec() }
    });
    SessionSource::tree(files.collect())
}

/// Returns the sources at a path: the file, the storage tree, or the files `*.jsonl` and `*.json` below a folder.
pub fn find(path: &Path) -> Result<Vec<NamedSource>, Failure> {
    if !path.is_dir() || is_storage(path) {
        let stem =
            if files::is_stream(path) { "stdin".as_ref() } else { path.file_stem().unwrap_or_default() };
        let name = stem.to_string_lossy().into_owned();
        return Ok(vec![NamedSource { path: path.to_owned(), name, named: true }]);
    }
    let sessions = below(path)?.into_iter().filter(|file| is_session(file));
    let named = |file: PathBuf| {
        let name = relative(&file.with_extension(""), path).replace('/', "-");
        NamedSource { path: file, name, named: false }
    };
    Ok(sessions.map(named).collect())
}

fn is_storage(folder: &Path) -> bool {
    STORAGE.iter().all(|name| folder.join(name).is_dir())
}

fn is_session(file: &Path) -> bool {
    let name = file.to_string_lossy();
    let ending = file.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("json" | "jsonl")) && !name.ends_with(".record.json")
}

/// Returns the files below a folder, ordered by path.
fn below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| files::unreadable(folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| files::unreadable(folder, &error))?.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() { found.extend(below(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}

fn relative(path: &Path, root: &Path) -> String {
    let steps = path.strip_prefix(root).unwrap_or(path).iter().map(|step| step.to_string_lossy());
    steps.collect::<Vec<_>>().join("/")
}
