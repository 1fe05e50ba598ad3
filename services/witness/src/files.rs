//! Bounded file reading with the witness's error text; writing is in the crate `durable`.

use std::io;
use std::path::Path;

/// Reads a file of at most `most` bytes; `None` if it does not exist.
pub fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    durable::read(path, most).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => io::Error::new(error.kind(), format!("more than {most} bytes")),
        _ => error,
    })
}
