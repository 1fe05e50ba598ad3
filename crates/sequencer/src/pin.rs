//! The pin: what this log has signed, kept outside of its database.
//!
//! A database can go back: an old copy is restored, a fail-over lands on a replica that lags. The
//! pin does not go back with it. It is raised after a commit and before the signature, so it is
//! never behind a signature that left; and it is never lowered.
//!
//! The file is replaced as a whole (written aside, fsynced, renamed, directory fsynced), under a
//! lock on a file beside it. The lock is held for the comparison and the write only, not for the
//! life of the process: on shared storage the next leader must be able to raise the pin while a
//! paused one still exists. A raise that finds a larger pin fails, and its caller signs nothing.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use merkle::{EntryDigest, RootHash, TreeSize};
use store::{LogStore, StoreError};

/// The first line of the file.
const HEADER: &str = "tabellion pin v1";
/// The largest file that is read as a pin.
const MAX_BYTES: u64 = 4096;
/// How long the lock is waited for: its holder needs milliseconds, unless it is paused.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The newest head that may have been signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The log's origin.
    pub origin: String,
    /// The head's size.
    pub size: TreeSize,
    /// The head's root.
    pub root: RootHash,
    /// The epoch under which it was committed.
    pub epoch: u64,
}

/// Why the pin could not be read or raised.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The pin is of a larger head: somebody else signs for this log.
    #[error("the pin is at size {} already", .0.size)]
    Ahead(Pin),
    /// The pin is of the same size and another root.
    #[error("the pin has another root at size {}: {}", .0.size, .0.root)]
    Disagrees(Pin),
    /// The pin is of another log.
    #[error("the pin is of the log {0}")]
    OtherLog(String),
    /// Another process holds the lock, and does not go on.
    #[error("{0} stays locked by another process")]
    Busy(PathBuf),
    /// The file is not a pin.
    #[error("{path} is not a pin: {why}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file system failed.
    #[error("{path}: {error}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Where the pin is kept.
#[derive(Clone, Debug)]
pub struct PinFile {
    directory: PathBuf,
    path: PathBuf,
}

impl PinFile {
    /// The pin in a state directory. Nothing is read or written yet.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self { path: directory.join("pin"), directory }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The pin as it stands; `None` if there is no file.
    pub fn read(&self) -> Result<Option<Pin>, PinError> {
        match fs::metadata(&self.path) {
            Ok(found) if found.len() > MAX_BYTES => return Err(self.unreadable("too long")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(&self.path, error)),
        }
        let text = fs::read(&self.path).map_err(|error| io_error(&self.path, error))?;
        let text = String::from_utf8(text).map_err(|_| self.unreadable("not text"))?;
        parse(&text).map(Some).map_err(|why| self.unreadable(why))
    }

    /// Raises the pin. Once `Ok`, it survives power loss, and the head may be signed.
    pub fn raise(&self, pin: &Pin) -> Result<(), PinError> {
        fs::create_dir_all(&self.directory).map_err(|error| io_error(&self.directory, error))?;
        let _lock = self.lock()?;
        match self.read()? {
            Some(old) if old == *pin => Ok(()),
            Some(old) => may_follow(old, pin).and_then(|()| self.replace(pin)),
            None => self.replace(pin),
        }
    }

    /// Locks the file beside the pin; unlocked when dropped, and by the system when the process ends.
    fn lock(&self) -> Result<File, PinError> {
        let path = self.directory.join("pin.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| io_error(&path, error))?;
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => return Err(PinError::Busy(path)),
                Err(TryLockError::Error(error)) => return Err(io_error(&path, error)),
            }
        }
    }

    fn replace(&self, pin: &Pin) -> Result<(), PinError> {
        let aside = self.directory.join("pin.new");
        write_durably(&aside, pin).map_err(|error| io_error(&aside, error))?;
        fs::rename(&aside, &self.path).map_err(|error| io_error(&self.path, error))?;
        let directory = File::open(&self.directory).and_then(|directory| directory.sync_all());
        directory.map_err(|error| io_error(&self.directory, error))
    }

    fn unreadable(&self, why: &'static str) -> PinError {
        PinError::Unreadable { path: self.path.clone(), why }
    }
}

fn may_follow(old: Pin, new: &Pin) -> Result<(), PinError> {
    if old.origin != new.origin {
        Err(PinError::OtherLog(old.origin))
    } else if old.size > new.size {
        Err(PinError::Ahead(old))
    } else if old.size == new.size && old.root != new.root {
        Err(PinError::Disagrees(old))
    } else {
        Ok(())
    }
}

fn write_durably(path: &Path, pin: &Pin) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(pin.to_string().as_bytes())?;
    file.sync_all()
}

fn io_error(path: &Path, error: io::Error) -> PinError {
    PinError::Io { path: path.to_owned(), error }
}

/// The file's content: lines for people, the last one over the others against damage.
impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, size, root, epoch } = self;
        let body = format!("{HEADER}\nlog {origin}\nsize {size}\nroot {root}\nepoch {epoch}\n");
        writeln!(f, "{body}check {}", EntryDigest::of(body.as_bytes()))
    }
}

fn parse(text: &str) -> Result<Pin, &'static str> {
    let (body, check) = text.rsplit_once("check ").ok_or("no check line")?;
    if check.strip_suffix('\n').and_then(|check| check.parse().ok()) != Some(EntryDigest::of(body.as_bytes()))
    {
        return Err("its check line does not match");
    }
    let mut lines = body.lines();
    if lines.next() != Some(HEADER) {
        return Err("another version");
    }
    let mut field = |name| lines.next().and_then(|line| line.strip_prefix(name)).ok_or("a line is missing");
    let origin = field("log ")?.to_owned();
    let size = field("size ")?.parse().map_err(|_| "no size")?;
    let root = field("root ")?.parse().map_err(|_| "no root")?;
    let epoch = field("epoch ")?.parse().map_err(|_| "no epoch")?;
    Ok(Pin { origin, size: TreeSize::new(size), root, epoch })
}

/// Why a head was not adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The database has no head of this size.
    #[error("the database has no head of size {0}")]
    NoSuchHead(TreeSize),
    /// The database has another root at this size.
    #[error("at size {size} the database has root {database}")]
    OtherRoot {
        /// The size.
        size: TreeSize,
        /// The root that the database has.
        database: RootHash,
    },
    /// The pin there does not allow it: it is never lowered.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes a head as the newest that was ever signed, on the word of an operator who knows.
///
/// For a log that moved to a host without its pin. The head must be in the database as named; a
/// pin that exists is only ever raised. The store must have been opened. Blocks on the file system.
pub async fn adopt(
    store: &dyn LogStore,
    file: &PinFile,
    origin: &str,
    size: TreeSize,
    root: RootHash,
) -> Result<Pin, AdoptError> {
    let head = store.head_of_size(size).await?.ok_or(AdoptError::NoSuchHead(size))?;
    if head.root != root {
        return Err(AdoptError::OtherRoot { size, database: head.root });
    }
    let pin = Pin { origin: origin.to_owned(), size, root, epoch: head.epoch };
    file.raise(&pin)?;
    tracing::warn!(%size, %root, origin, "adopted a head as the newest signed one");
    Ok(pin)
}
