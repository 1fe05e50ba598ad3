//! Reading, in the words of the witness; the writing is `durable`'s.

use std::io;
use std::path::Path;

/// Reads a file of at most so many bytes; `None` if there is none.
pub fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    durable::read(path, most).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => io::Error::new(error.kind(), format!("more than {most} bytes")),
        _ => error,
    })
}
