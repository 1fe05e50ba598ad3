//! Writing: aside, fsynced, and then under its name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Access, sync_folder_of};

/// What the name of a file ends with while it is written.
const ASIDE: &str = ".tmp";

/// Why a file was not written, or not for good.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What stood there stands there still.
    #[error("{path}: {error}")]
    Unchanged {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file is replaced, but maybe not for good: only a new start tells.
    #[error("{path}: {error}, after it was replaced")]
    InDoubt {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// What the system said, for those to whom the doubt makes no difference.
impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Unchanged { error, .. } | WriteError::InDoubt { error, .. } => error,
        }
    }
}

/// Puts a file in the place of whatever was there. Once `Ok`, it survives power loss.
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> Result<(), WriteError> {
    replace_and(sync_folder_of, path, bytes, access)
}

fn replace_and(
    sync: impl FnOnce(&Path) -> io::Result<()>,
    path: &Path,
    bytes: &[u8],
    access: Access,
) -> Result<(), WriteError> {
    let unchanged = |error| WriteError::Unchanged { path: path.to_owned(), error };
    let (aside, file) = begin_aside(path, access).map_err(unchanged)?;
    let written = fill(file, bytes).and_then(|()| fs::rename(&aside, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&aside);
        return Err(unchanged(error));
    }
    sync(path).map_err(|error| WriteError::InDoubt { path: path.to_owned(), error })
}

/// Makes a file that is not there yet; `false` if one of this name is. Of several callers at once, one makes it. Once `true`, it
/// survives power loss. The file system must have hard links.
pub fn create(path: &Path, bytes: &[u8], access: Access) -> Result<bool, WriteError> {
    let unchanged = |error| WriteError::Unchanged { path: path.to_owned(), error };
    let (aside, file) = begin_aside(path, access).map_err(unchanged)?;
    let made = fill(file, bytes).and_then(|()| fs::hard_link(&aside, path));
    let _ = fs::remove_file(&aside);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        made => made.map_err(unchanged)?,
    }
    let synced = sync_folder_of(path);
    synced.map(|()| true).map_err(|error| WriteError::InDoubt { path: path.to_owned(), error })
}

/// Makes an empty file, unless there is one, for good.
pub fn mark(path: &Path) -> Result<(), WriteError> {
    let made = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    made.map_err(|error| WriteError::Unchanged { path: path.to_owned(), error })?;
    sync_folder_of(path).map_err(|error| WriteError::InDoubt { path: path.to_owned(), error })
}

/// Writes a file under a name that nobody else uses, and fsyncs it; one of that name is removed first. For a file that takes its
/// place later, by [`rename`]: until then a crash may leave a part of it, or none.
pub fn write_anew(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fill(create_new(path, access)?, bytes)
}

/// Gives a file another name in its folder, for good.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder_of(to)
}

/// Removes a file, for good; one that is gone already is gone.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_folder_of(path)),
    }
}

/// Whether a file of this name was being written by [`replace`]: if nobody is at it any more, a crash left it.
pub fn is_aside(name: &str) -> bool {
    let mut parts = name.strip_suffix(ASIDE).unwrap_or_default().rsplitn(3, '.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number) && parts.next().is_some()
}

/// A new file that nobody else writes. The process alone does not tell: on shared storage, two may have one number, and one
/// that was killed had it before.
fn begin_aside(path: &Path, access: Access) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.{}{ASIDE}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let aside = path.with_file_name(name);
        match create_new(&aside, access) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((aside, made?)),
        }
    }
}

fn create_new(path: &Path, access: Access) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(access.of_file()).open(path)
}

fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
