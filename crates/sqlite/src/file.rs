//! Creation of the database file, before SQLite opens it.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Creates the database file for its owner only (0600), as SQLite creates its other files with the same mode. An
/// existing file keeps its mode and is not opened: closing any descriptor of it would drop SQLite's locks.
///
/// # Errors
///
/// If the file does not exist and cannot be created; the text names it.
pub fn make_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot make {}: {error}", path.display()))),
    }
}
