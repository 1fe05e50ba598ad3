//! [`DatabaseLocation`]: the folder of a SQLite database; checks that its file system is reliable and that no other
//! process uses the database.
//!
//! This module only uses the lock file and the names of files. The database file itself is never opened: closing
//! any descriptor of it would drop the locks that SQLite holds.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock, statfs};

use crate::FileAccess;

/// Suffix of the lock file, after the database's name.
pub const LOCK_SUFFIX: &str = ".lock";

/// File system, classified by its fitness for a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Local file system, as far as is known.
    Local,
    /// File system in memory: works, but loses its content with the power.
    Memory(&'static str),
    /// Shared file system: locks or shared memory do not reach all hosts that can open the file.
    Shared(&'static str),
}

impl FileSystem {
    /// Classifies the magic number that `statfs` returns.
    pub const fn of_magic(magic: u32) -> Self {
        match magic {
            0x0000_6969 => Self::Shared("NFS"),
            0x0000_517B => Self::Shared("SMB"),
            0xFE53_4D42 => Self::Shared("SMB2"),
            0xFF53_4D42 => Self::Shared("CIFS"),
            0x0102_1997 => Self::Shared("9p"),
            0x6573_5546 => Self::Shared("FUSE or virtiofs"),
            0x6A65_6A63 => Self::Shared("virtiofs"),
            0x786F_4256 => Self::Shared("vboxsf"),
            0xBACB_ACBC => Self::Shared("vmhgfs"),
            0x794C_7630 => Self::Shared("overlay"),
            0x5346_414F | 0x6B41_4653 => Self::Shared("AFS"),
            0x7375_7245 => Self::Shared("Coda"),
            0x00C3_6400 => Self::Shared("Ceph"),
            0x0BD0_0BD0 => Self::Shared("Lustre"),
            0x4750_4653 => Self::Shared("GPFS"),
            0x0116_1970 => Self::Shared("GFS2"),
            0x7461_636F => Self::Shared("OCFS2"),
            0x0102_1994 => Self::Memory("tmpfs"),
            0x8584_58F6 => Self::Memory("ramfs"),
            _ => Self::Local,
        }
    }
}

impl FileSystem {
    /// Classifies the file system of a folder.
    ///
    /// # Errors
    ///
    /// If there is no such folder, or it cannot be examined.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        let found = statfs(folder)?;
        // The type of the field differs between platforms; the magic numbers have 32 bits.
        Ok(Self::of_magic(found.f_type as u32))
    }
}

/// Reason why a database cannot be used where it is; the text says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Another process holds the lock file.
    #[error("{0}")]
    InUse(String),
    /// SQLite's locks are not reliable on this file system.
    #[error("{} is on {name}, where SQLite's locks cannot be trusted: use a local disk", folder.display())]
    FileSystem {
        /// Folder of the database.
        folder: PathBuf,
        /// Name of the file system.
        name: &'static str,
    },
    /// The file system is mounted read-only.
    #[error("{0}")]
    ReadOnly(String),
    /// The file system has no space left.
    #[error("{0}")]
    Full(String),
    /// A file is missing, cannot be used, or is not the one that was opened.
    #[error("{0}")]
    Refused(String),
    /// The file system does not tell whether a file is still the one that was opened.
    #[error("{0}")]
    Unknown(String),
}

/// Bytes of the write-ahead log that are rewritten at once.
const REWRITE_BYTES: usize = 1 << 20;

/// Location of a database, held under its lock file until dropped.
#[derive(Debug)]
pub struct DatabaseLocation {
    database: PathBuf,
    lock: File,
    files: Mutex<Vec<Remembered>>,
}

#[derive(Debug)]
struct Remembered {
    path: PathBuf,
    identity: InodeIdentity,
    /// `true` for the database file itself, which only grows and has one name.
    is_database: bool,
    size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InodeIdentity {
    device: u64,
    inode: u64,
}

impl DatabaseLocation {
    /// Takes the lock; refuses a file system that is not reliable.
    ///
    /// # Errors
    ///
    /// [`LocationError::InUse`] if another process has the lock; [`LocationError::FileSystem`] if the file system is
    /// not reliable and `allow_filesystem` is not set.
    pub fn take(database: &Path, allow_filesystem: bool, access: FileAccess) -> Result<Self, LocationError> {
        let database = real_path(database)?;
        check_file_system(&database, allow_filesystem)?;
        let lock = lock(&with_suffix(&database, LOCK_SUFFIX), access)?;
        Ok(Self { database, lock, files: Mutex::default() })
    }

    /// Records which files are in use, so that [`check`](Self::check) notices a replacement.
    ///
    /// # Errors
    ///
    /// If one of them is missing, or is not as it should be.
    pub fn remember(&self, wal: bool) -> Result<(), LocationError> {
        let lock = self.lock.metadata().map_err(|error| cannot("read", &self.database, &error))?;
        let mut files = vec![Remembered::new(with_suffix(&self.database, LOCK_SUFFIX), &lock, false)];
        let suffixes: &[&str] = if wal { &["", "-wal", "-shm"] } else { &[""] };
        for suffix in suffixes {
            let path = with_suffix(&self.database, suffix);
            let metadata = path.metadata().map_err(|error| cannot("find", &path, &error))?;
            files.push(Remembered::new(path, &metadata, suffix.is_empty()));
        }
        *self.files() = files;
        self.check()
    }

    /// Checks that every file is still the one that was opened (R66).
    ///
    /// # Errors
    ///
    /// If a file was moved, replaced or truncated.
    pub fn check(&self) -> Result<(), LocationError> {
        self.files().iter_mut().try_for_each(Remembered::check)
    }

    /// Overwrites the write-ahead log with its own bytes and flushes it, so that all of it is on the disk: after a
    /// failed flush, the kernel may mark pages clean that are not written. Blocks the thread. The caller holds
    /// SQLite's write lock.
    ///
    /// # Errors
    ///
    /// If the disk fails, or the file was replaced.
    pub fn rewrite_wal(&self) -> io::Result<()> {
        let path = with_suffix(&self.database, "-wal");
        // Unlike the database file, the log carries no locks of SQLite that closing it would drop.
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let identity = InodeIdentity::of(&file.metadata()?);
        if self.files().iter().any(|known| known.path == path && known.identity != identity) {
            return Err(io::Error::other(format!("{} was replaced while it was in use", path.display())));
        }
        rewrite(&file)?;
        file.sync_all()
    }

    /// Writes and flushes the lock file, which is in the database's folder, to learn whether the disk accepts
    /// writes. Blocks the thread.
    ///
    /// # Errors
    ///
    /// The file system's error if it does not.
    pub fn probe(&self) -> io::Result<()> {
        // Opened anew: a file system that became read-only may still accept writes to an open file.
        let file = OpenOptions::new().write(true).open(with_suffix(&self.database, LOCK_SUFFIX))?;
        file.write_all_at(b"pid", 0)?;
        file.sync_all()
    }

    /// Size of the write-ahead log in bytes.
    pub fn wal_bytes(&self) -> u64 {
        with_suffix(&self.database, "-wal").metadata().map_or(0, |metadata| metadata.len())
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Vec<Remembered>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DatabaseLocation {
    fn drop(&mut self) {
        // Closing would suffice, except for a child process that was forked and has not called exec yet.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

impl Remembered {
    fn new(path: PathBuf, metadata: &Metadata, is_database: bool) -> Self {
        Self { path, identity: InodeIdentity::of(metadata), is_database, size: 0 }
    }

    fn check(&mut self) -> Result<(), LocationError> {
        let metadata = self.path.metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => cannot("find", &self.path, &error),
            _ => LocationError::Unknown(format!("cannot examine {}: {error}", self.path.display())),
        })?;
        let path = self.path.display();
        if InodeIdentity::of(&metadata) != self.identity {
            return Err(LocationError::Refused(format!("{path} was replaced while it was in use")));
        }
        if !self.is_database {
            return Ok(());
        }
        if metadata.nlink() != 1 {
            return Err(LocationError::Refused(format!("{path} has a second name (a hard link)")));
        }
        if metadata.len() < self.size {
            return Err(LocationError::Refused(format!("{path} was truncated while it was in use")));
        }
        self.size = metadata.len();
        Ok(())
    }
}

impl InodeIdentity {
    fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

fn rewrite(file: &File) -> io::Result<()> {
    let mut bytes = vec![0; REWRITE_BYTES];
    let mut at = 0;
    loop {
        let read = file.read_at(&mut bytes, at)?;
        if read == 0 {
            return Ok(());
        }
        file.write_all_at(&bytes[..read], at)?;
        at += read as u64;
    }
}

/// Resolves every symbolic link, so that two names of a database lead to one lock file.
fn real_path(database: &Path) -> Result<PathBuf, LocationError> {
    if let Ok(path) = database.canonicalize() {
        return Ok(path);
    }
    let name = database
        .file_name()
        .ok_or_else(|| LocationError::Refused("the database's path names no file".into()))?;
    let folder = match database.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|error| cannot("find", folder, &error))?;
    Ok(folder.join(name))
}

fn check_file_system(database: &Path, allowed: bool) -> Result<(), LocationError> {
    let folder = database.parent().unwrap_or(database);
    match FileSystem::of_folder(folder).map_err(|error| cannot("examine", folder, &error))? {
        FileSystem::Local => Ok(()),
        FileSystem::Memory(name) => {
            tracing::warn!(folder = %folder.display(), "{name} keeps the database in memory: it is lost at a power failure");
            Ok(())
        }
        FileSystem::Shared(name) if allowed => {
            tracing::warn!(folder = %folder.display(), "{name} is used because the settings allow it");
            Ok(())
        }
        FileSystem::Shared(name) => Err(LocationError::FileSystem { folder: folder.to_owned(), name }),
    }
}

fn lock(path: &Path, access: FileAccess) -> Result<File, LocationError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(access.of_file());
    let mut file = options.open(path).map_err(|error| cannot("open", path, &error))?;
    if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK {
            return Err(cannot("lock", path, &error.into()));
        }
        let mut holder = String::new();
        // Best effort: the lock decides, and the number only helps the reader of the message.
        let _ = file.read_to_string(&mut holder);
        let text =
            format!("another process ({}) has the database: {} is locked", holder.trim(), path.display());
        return Err(LocationError::InUse(text));
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "pid {}", std::process::id()));
    written.map_err(|error| cannot("write", path, &error))?;
    Ok(file)
}

fn with_suffix(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> LocationError {
    let text = format!("cannot {verb} {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => LocationError::ReadOnly(text),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LocationError::Full(text),
        _ => LocationError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r65_file_systems_that_break_locks_are_known_by_name() {
        let named = [
            (0x6969, "NFS"),
            (0x517B, "SMB"),
            (0xFF53_4D42, "CIFS"),
            (0x0102_1997, "9p"),
            (0x6573_5546, "FUSE or virtiofs"),
            (0x794C_7630, "overlay"),
        ];
        for (magic, name) in named {
            assert_eq!(FileSystem::of_magic(magic), FileSystem::Shared(name));
        }
    }

    #[test]
    fn a_local_disk_is_fine_and_memory_is_named() {
        for ext4_xfs_btrfs in [0xEF53, 0x5846_5342, 0x9123_683E] {
            assert_eq!(FileSystem::of_magic(ext4_xfs_btrfs), FileSystem::Local);
        }
        assert_eq!(FileSystem::of_magic(0x0102_1994), FileSystem::Memory("tmpfs"));
    }
}
