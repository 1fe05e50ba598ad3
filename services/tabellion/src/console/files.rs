//! Files as arguments: `-` is a standard stream, and output files are written atomically.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use durable::WriteError;
use jose::json::{CheckedJson, JsonError, Limits};

use super::exit::Exit;
use super::failure::Failure;
use super::ignore_closed_pipe;

/// Maximum size in bytes of an input file: the maximum of a statement, with room for its payload.
pub const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

/// The permissions of a new file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The permissions from the umask.
    Ordinary,
    /// Access for the owner only (0600, and 0700 for a folder), for keys.
    Secret,
}

impl Access {
    fn of_file(self) -> durable::FileAccess {
        match self {
            Self::Ordinary => durable::FileAccess::Public,
            Self::Secret => durable::FileAccess::Secret,
        }
    }
}

/// The treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The file is overwritten.
    Replace,
    /// The file is kept; [`Exit::Exists`] if its contents differ.
    Keep,
}

/// Reads a file, or standard input for `-`, of at most [`MAX_INPUT_BYTES`].
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_within(path, MAX_INPUT_BYTES)
}

fn read_within(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if is_stream(path) {
        refuse_second_reading()?;
    }
    let read = if is_stream(path) {
        io::stdin().lock().take(most + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > most {
        let what = format!("{} is larger than {} MiB", path.display(), most >> 20);
        return Err(Failure::new(Exit::Failure, "file-too-large", what));
    }
    Ok(bytes)
}

/// Reads a file that must be UTF-8 (`not-text`).
pub fn read_text(path: &Path) -> Result<String, Failure> {
    read_text_within(path, MAX_INPUT_BYTES)
}

/// Reads a file of at most `most` bytes, that must be UTF-8 (`not-text`).
pub fn read_text_within(path: &Path, most: u64) -> Result<String, Failure> {
    String::from_utf8(read_within(path, most)?)
        .map_err(|_| Failure::new(Exit::Failure, "not-text", format!("{} is not UTF-8 text", path.display())))
}

/// Reads a file that must be strict JSON (`not-json`).
pub fn read_json(path: &Path) -> Result<serde_json::Value, Failure> {
    jose::json::parse_strict(&read(path)?, Limits::default()).map_err(|error| not_json(path, &error))
}

/// Checks that the bytes of a file are strict JSON (`not-json`).
pub fn check_json<'t>(path: &Path, bytes: &'t [u8]) -> Result<CheckedJson<'t>, Failure> {
    jose::json::check(bytes, Limits::default()).map_err(|error| not_json(path, &error))
}

fn not_json(path: &Path, error: &JsonError) -> Failure {
    Failure::new(Exit::Failure, "not-json", format!("{}: {error}", path.display()))
}

/// Writes a file atomically (see `durable`), or standard output for `-`.
pub fn write(path: &Path, bytes: &[u8], access: Access, existing: Existing) -> Result<(), Failure> {
    if is_stream(path) {
        let mut out = io::stdout().lock();
        return ignore_closed_pipe(out.write_all(bytes).and_then(|()| out.flush()));
    }
    if existing == Existing::Keep && path.exists() {
        return same_or_refused(path, bytes);
    }
    durable::replace(path, bytes, access.of_file()).map_err(not_replaced)
}

/// Creates a folder and its parents; an existing one stays as it is.
pub fn make_folder(path: &Path, access: Access) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    if access == Access::Secret {
        builder.mode(0o700);
    }
    builder.recursive(true).create(path).map_err(|error| {
        Failure::new(Exit::Failure, "file-unwritable", format!("cannot make {}", path.display()))
            .fact("because", error.to_string())
    })
}

/// Replaces a file, which keeps its permissions; a new file is for its owner only.
pub fn replace_keeping_access(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let permissions = match std::fs::metadata(path) {
        Ok(metadata) => Some(metadata.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unreadable(path, &error)),
    };
    write(path, bytes, Access::Secret, Existing::Replace)?;
    let Some(permissions) = permissions else { return Ok(()) };
    std::fs::set_permissions(path, permissions).map_err(|error| unwritable(path, &error))
}

fn same_or_refused(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if read(path)? == bytes {
        return Ok(());
    }
    Err(Failure::new(Exit::Exists, "exists", format!("{} exists and holds something else", path.display()))
        .hint("name another file, or move this one away"))
}

/// Rejects a second `-`: standard input can be read once, and a second read would return nothing.
fn refuse_second_reading() -> Result<(), Failure> {
    static READ: AtomicBool = AtomicBool::new(false);
    if READ.swap(true, Ordering::Relaxed) { Err(stdin_twice()) } else { Ok(()) }
}

/// Returns a path as text, for the argument of a command; fails with `usage` if it is not UTF-8.
pub fn path_text(path: &Path) -> Result<String, Failure> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(Exit::Usage, "usage", format!("{} is not UTF-8 text", path.display())))
}

/// Returns the flag `--NAME=PATH`; fails like [`path_text`].
pub fn path_flag(name: &str, path: &Path) -> Result<String, Failure> {
    Ok(format!("--{name}={}", path_text(path)?))
}

/// The error if two arguments are `-`.
pub fn stdin_twice() -> Failure {
    Failure::new(Exit::Usage, "stdin-twice", "standard input can be used for one file only")
}

/// Returns the path `FILE.ending`.
pub fn with_extension(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    PathBuf::from(name)
}

/// Returns whether the path is `-`, standard input or output.
pub fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns the failure for a file that cannot be read.
pub fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let (exit, code) = match error.kind() {
        io::ErrorKind::NotFound => (Exit::NotFound, "file-not-found"),
        _ => (Exit::Failure, "file-unreadable"),
    };
    Failure::new(exit, code, format!("cannot read {}: {error}", path.display()))
}

/// Returns the failure for a file that cannot be written.
pub fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failure, "file-unwritable", format!("cannot write {}: {error}", path.display()))
}

fn not_replaced(error: WriteError) -> Failure {
    match error {
        WriteError::Unchanged { path, error } => unwritable(&path, &error),
        WriteError::InDoubt { path, error } => {
            let what = format!("{} is written, but may not survive a power loss: {error}", path.display());
            Failure::new(Exit::Failure, "file-unwritable", what)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_holds_something_else_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, b"one", Access::Ordinary, Existing::Keep).unwrap();
        write(&path, b"one", Access::Ordinary, Existing::Keep).unwrap();
        let refused = write(&path, b"two", Access::Ordinary, Existing::Keep).unwrap_err();
        assert_eq!(refused.exit, Exit::Exists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn a_secret_is_readable_by_its_owner_only_and_leaves_no_temporary_behind() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, b"secret", Access::Secret, Existing::Replace).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_not_there_ends_with_not_found() {
        assert_eq!(read(Path::new("/nonexistent/file")).unwrap_err().exit, Exit::NotFound);
    }
}
