//! Writing: to a temporary file, which is fsynced and then renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::temporary::temporary_path;
use crate::{FileAccess, sync_folder_of};

/// Error of a write, with the state in which it left the file.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file is as it was before.
    #[error("{path}: {error}")]
    Unchanged {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file was replaced, but perhaps not durably: a crash may bring the old one back.
    #[error("{path}: {error}, after it was replaced")]
    InDoubt {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// Drops the path and the variant, for callers that treat both alike.
impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Unchanged { error, .. } | WriteError::InDoubt { error, .. } => error,
        }
    }
}

/// Replaces a file, or creates it. Once `Ok`, the new content survives power loss.
pub fn replace(path: &Path, bytes: &[u8], access: FileAccess) -> Result<(), WriteError> {
    replace_and(sync_folder_of, path, bytes, access)
}

fn replace_and(
    sync: impl FnOnce(&Path) -> io::Result<()>,
    path: &Path,
    bytes: &[u8],
    access: FileAccess,
) -> Result<(), WriteError> {
    let unchanged = |error| WriteError::Unchanged { path: path.to_owned(), error };
    let (temporary, file) = begin_temporary(path, access).map_err(unchanged)?;
    let written = fill(file, bytes).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(unchanged(error));
    }
    sync(path).map_err(|error| WriteError::InDoubt { path: path.to_owned(), error })
}

/// Creates a file; `false` if one of this name exists. Of several concurrent callers one creates it. Once `true`,
/// it survives power loss. The file system must support hard links.
pub fn create(path: &Path, bytes: &[u8], access: FileAccess) -> Result<bool, WriteError> {
    let unchanged = |error| WriteError::Unchanged { path: path.to_owned(), error };
    let (temporary, file) = begin_temporary(path, access).map_err(unchanged)?;
    let made = fill(file, bytes).and_then(|()| fs::hard_link(&temporary, path));
    let _ = fs::remove_file(&temporary);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        made => made.map_err(unchanged)?,
    }
    let synced = sync_folder_of(path);
    synced.map(|()| true).map_err(|error| WriteError::InDoubt { path: path.to_owned(), error })
}

/// Creates an empty file durably, unless it exists.
pub fn mark(path: &Path) -> Result<(), WriteError> {
    let made = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    made.map_err(|error| WriteError::Unchanged { path: path.to_owned(), error })?;
    sync_folder_of(path).map_err(|error| WriteError::InDoubt { path: path.to_owned(), error })
}

/// Writes a file under a name that no other process uses, and fsyncs it; an existing file of that name is removed
/// first. For a file that [`rename`] puts in place later: until then a crash may leave a part of it, or none.
pub fn write_anew(path: &Path, bytes: &[u8], access: FileAccess) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fill(create_new(path, access)?, bytes)
}

/// Renames a file within its folder, durably.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder_of(to)
}

/// Removes a file durably; `Ok` if it does not exist.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_folder_of(path)),
    }
}

/// Creates a temporary file that no other process writes. The process ID alone does not make the name unique: on
/// shared storage two processes may have the same one, and an earlier process that was killed may have had it,
/// too.
fn begin_temporary(path: &Path, access: FileAccess) -> io::Result<(PathBuf, File)> {
    loop {
        let temporary = temporary_path(path);
        match create_new(&temporary, access) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((temporary, made?)),
        }
    }
}

fn create_new(path: &Path, access: FileAccess) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(access.of_file()).open(path)
}

fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
