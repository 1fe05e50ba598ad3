//! Files that are complete or absent, and that survive power loss once written.
//!
//! [`replace`] writes a temporary file, fsyncs it, renames it, and fsyncs the folder: a reader, at any moment and
//! after any crash, has the old bytes or the new ones. Once `Ok`, the new ones stay. An error tells whether the
//! old file is still in place ([`WriteError::Unchanged`]), or was replaced, possibly not durably, so that the
//! content after a crash is not known ([`WriteError::InDoubt`]). Two writers of one file, in any processes, never
//! mix their bytes: the last one wins. [`Lock`] excludes other writers altogether.
//!
//! [`DatabaseLocation`] is for databases, which write their files themselves: one process at a time, on a file system
//! with reliable locks, in the files that it opened.
//!
//! All functions block. Not here: files that are written in place (the slots of a pin, in `sequencer`), or that
//! are too long for memory or must never be replaced (`archive::PartialFile`). A process that is killed during a write
//! leaves its temporary file; readers ignore it ([`is_temporary`]), and a process that works alone in a folder may
//! remove it.
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use durable::FileAccess;
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("state");
//! durable::replace(&file, b"first", FileAccess::Secret)?;
//! durable::replace(&file, b"second", FileAccess::Secret)?;
//! assert_eq!(durable::read(&file, 1024)?, Some(b"second".to_vec()));
//! # Ok(())
//! # }
//! ```

pub mod crash;
mod database_location;
mod folder;
mod lock;
mod private;
mod read;
mod temporary;
mod write;

pub use database_location::{DatabaseLocation, FileSystem, LOCK_SUFFIX, LocationError};
pub use folder::{make_folder, names, sync_folder_of};
pub use lock::{Lock, LockError};
pub use private::is_private;
pub use read::read;
pub use temporary::is_temporary;
pub use write::{WriteError, create, mark, remove, rename, replace, write_anew};

/// Permission to read the created files. The umask may remove more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// All users.
    Public,
    /// The owner only.
    Secret,
}

impl FileAccess {
    fn of_file(self) -> u32 {
        match self {
            Self::Public => 0o644,
            Self::Secret => 0o600,
        }
    }

    fn of_folder(self) -> u32 {
        match self {
            Self::Public => 0o755,
            Self::Secret => 0o700,
        }
    }
}
