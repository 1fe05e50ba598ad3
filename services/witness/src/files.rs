//! Files that are whole or not there, and that survive power loss once written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Public,
    /// Its owner.
    Secret,
}

/// Why a file was not written.
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

/// Replaces a file as a whole: written aside, fsynced, renamed, directory fsynced.
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> Result<(), WriteError> {
    let aside = aside(path);
    let written = write(&aside, bytes, access).and_then(|()| fs::rename(&aside, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&aside);
        return Err(WriteError::Unchanged { path: path.to_owned(), error });
    }
    sync_directory(path).map_err(|error| WriteError::InDoubt { path: path.to_owned(), error })
}

/// Makes an empty file, for good.
pub fn mark(path: &Path) -> Result<(), WriteError> {
    let made = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    made.map_err(|error| WriteError::Unchanged { path: path.to_owned(), error })?;
    sync_directory(path).map_err(|error| WriteError::InDoubt { path: path.to_owned(), error })
}

/// Writes a file that nobody else has, and fsyncs it. One of that name is written over.
pub fn write(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mode = if access == Access::Secret { 0o600 } else { 0o644 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a rename in a file's directory last.
pub fn sync_directory(of: &Path) -> io::Result<()> {
    let directory = of.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// Reads a file of at most so many bytes; `None` if there is none.
pub fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {most} bytes"))),
        false => Ok(Some(bytes)),
    }
}

/// The name under which a file is written before it takes its place.
pub fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}
