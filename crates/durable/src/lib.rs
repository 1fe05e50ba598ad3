//! Files that are whole or not there, and that survive power loss once written.
//!
//! [`replace`] writes a file aside, fsyncs it, gives it its name, and fsyncs the folder: whoever reads it, at any moment and
//! after any crash, has the old bytes or the new ones. Once `Ok`, the new ones stay. An error says which of two it was: what
//! stood there stands there still ([`WriteError::Unchanged`]), or it was replaced and only a new start tells for how long
//! ([`WriteError::InDoubt`]). Two writers of one file, in whatever processes, never write into one another: the last one
//! stands. [`Lock`] keeps the others out altogether.
//!
//! [`Place`] is for databases, which write their files themselves: one process at a time, on a file system that keeps locks,
//! in the files that it opened.
//!
//! All of it blocks. Left out: a file that is written in place (the slots of a pin, in `sequencer`), or that is too long for memory
//! or never to be replaced (`archive::Aside`). A process that is killed inside of a write leaves the file that it wrote
//! aside; nobody takes it for anything ([`is_aside`]), and who works alone in a folder may remove it.

pub mod crash;
mod folder;
mod lock;
mod place;
mod read;
mod write;

pub use folder::{make_folder, names, sync_folder_of};
pub use lock::{Lock, LockError};
pub use place::{FileSystem, LOCK_SUFFIX, Place, PlaceError};
pub use read::read;
pub use write::{WriteError, create, is_aside, mark, remove, rename, replace, write_anew};

/// Who may read what is made. The umask may take away more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Public,
    /// Its owner.
    Secret,
}

impl Access {
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
