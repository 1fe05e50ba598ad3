//! The codes of faults of a disk, for daemons that do not start because of one.

use std::io::ErrorKind;

/// The code of a full disk.
pub const FULL: &str = "storage-full";
/// The code of a file system that takes no writes.
pub const READ_ONLY: &str = "storage-read-only";

/// Returns the code of a system's error, if it is such a fault.
pub fn code(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(FULL),
        ErrorKind::ReadOnlyFilesystem => Some(READ_ONLY),
        _ => None,
    }
}
