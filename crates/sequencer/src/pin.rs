//! The pin: what this log has signed, kept outside of its database.
//!
//! A database can go back: an old copy is restored, a fail-over lands on a replica that lags. The
//! pin does not go back with it. It is raised after a commit and before the signature, so it is
//! never behind a signature that left; and it is never lowered.
//!
//! The file has two slots, each in disk blocks of its own, and a raise writes the one that does not hold the newest pin:
//! one flush of data, for a batch waits for it. A slot that a crash left half-written fails its check, and the pin before it
//! stands: the raise had not returned, so nothing was signed. A file of one pin, as it was once written, is read and then replaced.
//!
//! A raise holds a lock on a file beside it for the comparison and the write only, not for the life of the process: on shared
//! storage the next leader must be able to raise the pin while a paused one still exists. A raise that finds a larger pin
//! fails, and its caller signs nothing.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use durable::{Access, Lock, LockError};
use merkle::{EntryDigest, RootHash, TreeSize};
use store::{LogStore, StoreError};

/// The first line of a slot.
const HEADER: &str = "tabellion pin v2";
/// The first line of a file of one pin.
const ALONE: &str = "tabellion pin v1";
/// Bytes of a slot: no disk tears one by writing the other.
const SLOT_BYTES: usize = 4096;
/// The file is no longer than its two slots.
const FILE_BYTES: usize = 2 * SLOT_BYTES;
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
        Ok(self.newest()?.map(|slot| slot.pin))
    }

    /// Raises the pin. Once `Ok`, it survives power loss, and the head may be signed.
    pub fn raise(&self, pin: &Pin) -> Result<(), PinError> {
        durable::make_folder(&self.directory, Access::Public)
            .map_err(|error| io_error(&self.directory, error))?;
        let _lock = self.lock()?;
        match self.newest()? {
            // Written, and perhaps by a process that ended before it flushed.
            Some(old) if old.pin == *pin => self.flush(),
            Some(old) => {
                may_follow(old.pin, pin)?;
                match old.place {
                    Some(place) => self.write(1 - place, old.turn + 1, pin),
                    None => self.create(pin),
                }
            }
            None => self.create(pin),
        }
    }

    fn newest(&self) -> Result<Option<Slot>, PinError> {
        match durable::read(&self.path, FILE_BYTES as u64) {
            Ok(Some(bytes)) => newest_of(&bytes).map(Some).map_err(|why| self.unreadable(why)),
            Ok(None) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(self.unreadable("too long")),
            Err(error) => Err(io_error(&self.path, error)),
        }
    }

    /// Locks the file beside the pin.
    fn lock(&self) -> Result<Lock, PinError> {
        let path = self.directory.join("pin.lock");
        Lock::wait(&path, Access::Public, LOCK_PATIENCE).map_err(|error| match error {
            LockError::Taken => PinError::Busy(path),
            LockError::Io(error) => io_error(&path, error),
        })
    }

    fn flush(&self) -> Result<(), PinError> {
        let flushed = OpenOptions::new().write(true).open(&self.path).and_then(|file| file.sync_data());
        flushed.map_err(|error| io_error(&self.path, error))?;
        durable::sync_folder_of(&self.path).map_err(|error| io_error(&self.directory, error))
    }

    /// Writes a slot over, in place.
    fn write(&self, place: usize, turn: u64, pin: &Pin) -> Result<(), PinError> {
        let slot = slot(turn, pin).map_err(|why| self.unreadable(why))?;
        let file = OpenOptions::new().write(true).open(&self.path);
        let written = file.and_then(|file| {
            file.write_all_at(&slot, (place * SLOT_BYTES) as u64)?;
            file.sync_data()
        });
        written.map_err(|error| io_error(&self.path, error))
    }

    /// A new file with both slots, so that later writes change no size and nothing has to be flushed but their data.
    fn create(&self, pin: &Pin) -> Result<(), PinError> {
        let slot = slot(0, pin).map_err(|why| self.unreadable(why))?;
        let slots = [slot, vec![b' '; SLOT_BYTES]].concat();
        durable::replace(&self.path, &slots, Access::Public)
            .map_err(|error| io_error(&self.path, error.into()))
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

fn io_error(path: &Path, error: io::Error) -> PinError {
    PinError::Io { path: path.to_owned(), error }
}

/// A pin as it stands in the file.
struct Slot {
    pin: Pin,
    /// Which slot; `None` in a file of one pin.
    place: Option<usize>,
    /// Counts raises: the newest slot has the most.
    turn: u64,
}

/// The lines of a pin, the last one over the others against damage, and spaces to the end.
fn slot(turn: u64, pin: &Pin) -> Result<Vec<u8>, &'static str> {
    let Pin { origin, size, root, epoch } = pin;
    let body = format!("{HEADER}\nlog {origin}\nsize {size}\nroot {root}\nepoch {epoch}\nturn {turn}\n");
    let mut text = format!("{body}check {}\n", EntryDigest::of(body.as_bytes())).into_bytes();
    if text.len() >= SLOT_BYTES {
        return Err("the log's name is too long for it");
    }
    text.resize(SLOT_BYTES - 1, b' ');
    text.push(b'\n');
    Ok(text)
}

/// The newest sound pin of a file.
fn newest_of(bytes: &[u8]) -> Result<Slot, &'static str> {
    if bytes.len() < FILE_BYTES {
        return parse(bytes, None);
    }
    let slots = bytes.chunks(SLOT_BYTES).enumerate().map(|(place, bytes)| parse(bytes, Some(place)));
    let newer = |one: Result<Slot, _>, two| match (one, two) {
        (Ok(one), Ok(two)) => Ok(if one.turn >= two.turn { one } else { two }),
        (Ok(sound), Err(_)) | (Err(_), Ok(sound)) => Ok(sound),
        (Err(why), Err(_)) => Err(why),
    };
    slots.reduce(newer).unwrap_or(Err("empty"))
}

fn parse(bytes: &[u8], place: Option<usize>) -> Result<Slot, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text")?;
    let text = match place {
        Some(_) => text.strip_suffix('\n').ok_or("cut short")?.trim_end_matches(' '),
        None => text,
    };
    let (body, check) = text.rsplit_once("check ").ok_or("no check line")?;
    let check = check.strip_suffix('\n').and_then(|check| check.parse().ok());
    if check != Some(EntryDigest::of(body.as_bytes())) {
        return Err("its check line does not match");
    }
    let mut lines = body.lines();
    if lines.next() != Some(if place.is_some() { HEADER } else { ALONE }) {
        return Err("another version");
    }
    let mut field = |name| lines.next().and_then(|line| line.strip_prefix(name)).ok_or("a line is missing");
    let origin = field("log ")?.to_owned();
    let size = field("size ")?.parse().map_err(|_| "no size")?;
    let root = field("root ")?.parse().map_err(|_| "no root")?;
    let epoch = field("epoch ")?.parse().map_err(|_| "no epoch")?;
    let turn = match place {
        Some(_) => field("turn ")?.parse().map_err(|_| "no turn")?,
        None => 0,
    };
    Ok(Slot { pin: Pin { origin, size: TreeSize::new(size), root, epoch }, place, turn })
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

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn pin(size: u64) -> Pin {
        let root = RootHash::from_bytes([size as u8; 32]);
        Pin { origin: "log.example".into(), size: TreeSize::new(size), root, epoch: 3 }
    }

    fn file() -> (tempfile::TempDir, PinFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::in_directory(folder.path());
        (folder, file)
    }

    #[test]
    fn the_pin_is_what_was_raised_last_and_never_goes_back() {
        let (_folder, file) = file();
        assert_eq!(file.read().unwrap(), None);
        for size in [1, 2, 7, 8, 9] {
            file.raise(&pin(size)).unwrap();
            assert_eq!(file.read().unwrap(), Some(pin(size)));
        }
        assert!(matches!(file.raise(&pin(8)), Err(PinError::Ahead(_))));
        let other_root = Pin { root: pin(1).root, ..pin(9) };
        assert!(matches!(file.raise(&other_root), Err(PinError::Disagrees(_))));
        let other_log = Pin { origin: "other.example".into(), ..pin(10) };
        assert!(matches!(file.raise(&other_log), Err(PinError::OtherLog(_))));
        assert_eq!(file.read().unwrap(), Some(pin(9)));
    }

    #[test]
    fn a_pin_as_it_was_once_written_is_read_and_raised() {
        let (_folder, file) = file();
        let body = format!("{ALONE}\nlog log.example\nsize 5\nroot {}\nepoch 3\n", pin(5).root);
        fs::write(file.path(), format!("{body}check {}\n", EntryDigest::of(body.as_bytes()))).unwrap();
        assert_eq!(file.read().unwrap(), Some(pin(5)));
        assert!(matches!(file.raise(&pin(4)), Err(PinError::Ahead(_))));
        file.raise(&pin(6)).unwrap();
        assert_eq!(file.read().unwrap(), Some(pin(6)));
    }

    #[test]
    fn damage_to_both_slots_is_no_pin_at_all() {
        let (_folder, file) = file();
        file.raise(&pin(1)).unwrap();
        file.raise(&pin(2)).unwrap();
        let mut bytes = fs::read(file.path()).unwrap();
        bytes[30] ^= 1;
        bytes[SLOT_BYTES + 30] ^= 1;
        fs::write(file.path(), bytes).unwrap();
        assert!(matches!(file.read(), Err(PinError::Unreadable { .. })));
        assert!(matches!(file.raise(&pin(3)), Err(PinError::Unreadable { .. })));
    }

    proptest! {
        /// Power may be lost anywhere in the write of a slot: what stands is the pin before or the new one.
        #[test]
        fn a_torn_raise_leaves_the_pin_before_or_the_new_one(
            cut in 0..=SLOT_BYTES, garbage in proptest::option::of(any::<u8>()), raises in 1_u64..5,
        ) {
            let (_folder, file) = file();
            (1..=raises).for_each(|size| file.raise(&pin(size)).unwrap());
            let before = fs::read(file.path()).unwrap();
            file.raise(&pin(raises + 1)).unwrap();
            let after = fs::read(file.path()).unwrap();
            let slot = before.iter().zip(&after).position(|(a, b)| a != b).unwrap() / SLOT_BYTES * SLOT_BYTES;
            let mut torn = before.clone();
            torn[slot..slot + cut].copy_from_slice(&after[slot..slot + cut]);
            if let Some(garbage) = garbage {
                torn[slot + cut.min(SLOT_BYTES - 1)] = garbage;
            }
            fs::write(file.path(), torn).unwrap();
            let stands = file.read().unwrap();
            prop_assert!(stands == Some(pin(raises)) || stands == Some(pin(raises + 1)), "{stands:?}");
            file.raise(&pin(raises + 2)).unwrap();
            prop_assert_eq!(file.read().unwrap(), Some(pin(raises + 2)));
        }
    }
}
