//! The pin in a state directory: a file `pin.<epoch>` for each epoch that claimed it, normally one.
//!
//! On storage that several hosts mount, each must see at once which files the others made: a cluster file system,
//! or NFS mounted with `noac`. Otherwise use a pin in a second PostgreSQL.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use durable::FileAccess;

use super::protocol::{self, Operation, Registers};
use super::slots::{self, FILE_BYTES, PinSlot, SLOT_BYTES};
use super::{Pin, PinError, PinStore};
use crate::crash::Point;

/// Prefix of the file names; the epoch follows.
const PREFIX: &str = "pin.";
/// Attempts to list the directory until it does not change while the files are read: each change is a claim.
const LISTINGS: usize = 100;

/// Pin in a state directory.
#[derive(Clone, Debug)]
pub struct PinFile {
    directory: PathBuf,
}

impl PinFile {
    /// Names the directory; nothing is read or written yet.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Reads the pin; `None` if there is none. Blocks.
    ///
    /// # Errors
    ///
    /// If the files cannot be read, or are not a pin.
    pub fn read(&self) -> Result<Option<Pin>, PinError> {
        protocol::newest(&self.all()?)
    }

    /// Claims the pin for a newer epoch. Blocks. See [`PinStore::claim`].
    ///
    /// # Errors
    ///
    /// If the pin does not allow it, or cannot be written.
    pub fn claim(&self, pin: &Pin) -> Result<(), PinError> {
        durable::make_folder(&self.directory, FileAccess::Public)
            .map_err(|error| unavailable(&self.directory, &error))?;
        self.perform(Operation::claim(pin))
    }

    /// Raises the pin in the epoch that claimed it. Blocks. See [`PinStore::raise`].
    ///
    /// # Errors
    /// If the pin does not allow it, or cannot be written.
    pub fn raise(&self, pin: &Pin) -> Result<(), PinError> {
        self.perform(Operation::raise(pin))
    }

    fn perform(&self, mut operation: Operation) -> Result<(), PinError> {
        while !operation.step(self)? {
            if operation.is_about_to_write() {
                Point::InPin.visit();
            }
        }
        Ok(())
    }

    fn path_of(&self, epoch: u64) -> PathBuf {
        self.directory.join(format!("{PREFIX}{epoch}"))
    }

    /// Lists the epochs that have a file, in order.
    fn epochs(&self) -> Result<Vec<u64>, PinError> {
        let names = durable::names(&self.directory, "");
        let names = names.map_err(|error| unavailable(&self.directory, &error))?;
        let mut epochs: Vec<u64> =
            names.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
        epochs.sort_unstable();
        Ok(epochs)
    }

    fn slot(&self, epoch: u64) -> Result<Option<PinSlot>, PinError> {
        let path = self.path_of(epoch);
        let bytes = match durable::read(&path, FILE_BYTES as u64) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(unreadable(&path, "too long"));
            }
            Err(error) => return Err(unavailable(&path, &error)),
        };
        let slot = slots::newest(&bytes).map_err(|why| unreadable(&path, why))?;
        match slot.pin.epoch == epoch {
            true => Ok(Some(slot)),
            false => Err(unreadable(&path, "it is of another epoch")),
        }
    }
}

impl Registers for PinFile {
    /// Reads all files while the directory does not change. A file is removed only after a newer one exists, so
    /// the result is complete.
    fn all(&self) -> Result<Vec<Pin>, PinError> {
        for _ in 0..LISTINGS {
            let epochs = self.epochs()?;
            let slots: Vec<Option<PinSlot>> =
                epochs.iter().map(|epoch| self.slot(*epoch)).collect::<Result<_, _>>()?;
            if self.epochs()? == epochs
                && let Some(slots) = slots.into_iter().collect::<Option<Vec<PinSlot>>>()
            {
                return Ok(slots.into_iter().map(|slot| slot.pin).collect());
            }
        }
        let why = "it changes too fast to be read".to_owned();
        Err(PinError::Unavailable { place: self.place(), why })
    }

    fn create(&self, pin: &Pin) -> Result<bool, PinError> {
        let path = self.path_of(pin.epoch);
        let bytes = slots::new_file(pin).map_err(|why| unreadable(&path, why))?;
        durable::create(&path, &bytes, FileAccess::Public).map_err(|error| unavailable(&path, &error.into()))
    }

    /// Writes the slot that does not hold the newest pin. If the pin is there already, this epoch wrote it, and it
    /// is only flushed again.
    fn write(&self, pin: &Pin) -> Result<(), PinError> {
        let path = self.path_of(pin.epoch);
        let Some(old) = self.slot(pin.epoch)? else { return Err(PinError::Superseded(pin.epoch)) };
        let written = OpenOptions::new().write(true).open(&path).and_then(|file| {
            if old.pin != *pin {
                let slot = slots::encode(old.turn + 1, pin).map_err(io::Error::other)?;
                file.write_all_at(&slot, ((1 - old.number) * SLOT_BYTES) as u64)?;
            }
            file.sync_data()
        });
        written.map_err(|error| unavailable(&path, &error))
    }

    fn remove(&self, epoch: u64) -> Result<(), PinError> {
        let path = self.path_of(epoch);
        durable::remove(&path).map_err(|error| unavailable(&path, &error))
    }
}

#[async_trait]
impl PinStore for PinFile {
    async fn read(&self) -> Result<Option<Pin>, PinError> {
        self.aside(|file| PinFile::read(&file)).await
    }

    async fn claim(&self, pin: &Pin) -> Result<(), PinError> {
        let pin = pin.clone();
        self.aside(move |file| PinFile::claim(&file, &pin)).await
    }

    async fn raise(&self, pin: &Pin) -> Result<(), PinError> {
        let pin = pin.clone();
        self.aside(move |file| PinFile::raise(&file, &pin)).await
    }

    fn place(&self) -> String {
        self.directory.join("pin.*").display().to_string()
    }
}

impl PinFile {
    /// Runs a blocking operation outside of the async workers.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> Result<T, PinError> + Send + 'static,
    ) -> Result<T, PinError> {
        let file = self.clone();
        let done = tokio::task::spawn_blocking(move || work(file)).await;
        done.unwrap_or_else(|error| {
            Err(PinError::Unavailable { place: self.place(), why: error.to_string() })
        })
    }
}

fn unavailable(path: &Path, error: &io::Error) -> PinError {
    PinError::Unavailable { place: path.display().to_string(), why: error.to_string() }
}

fn unreadable(path: &Path, why: &str) -> PinError {
    PinError::Unreadable { place: path.display().to_string(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use merkle::{RootHash, TreeSize};
    use proptest::prelude::*;

    use super::*;

    fn pin(size: u64) -> Pin {
        let root = RootHash::from_bytes([size as u8; 32]);
        Pin { origin: "log.example".into(), size: TreeSize::new(size), root, epoch: 3 }
    }

    fn claimed(size: u64) -> (tempfile::TempDir, PinFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::in_directory(folder.path());
        assert_eq!(file.read().unwrap(), None);
        file.claim(&pin(size)).unwrap();
        (folder, file)
    }

    #[test]
    fn the_pin_is_what_was_raised_last_and_never_goes_back() {
        let (_folder, file) = claimed(1);
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
    fn a_newer_epoch_claims_the_pin_and_the_older_one_raises_it_no_more() {
        let (folder, file) = claimed(5);
        let newer = Pin { epoch: 4, ..pin(5) };
        file.claim(&newer).unwrap();
        assert!(matches!(file.raise(&pin(6)), Err(PinError::Superseded(4))));
        assert_eq!(file.read().unwrap(), Some(newer));
        let names: Vec<String> = durable::names(folder.path(), "").unwrap();
        assert_eq!(names, ["pin.4"], "the older file says nothing more");
    }

    #[test]
    fn damage_to_both_slots_is_no_pin_at_all() {
        let (folder, file) = claimed(1);
        file.raise(&pin(2)).unwrap();
        let path = folder.path().join("pin.3");
        let mut bytes = fs::read(&path).unwrap();
        bytes[30] ^= 1;
        bytes[SLOT_BYTES + 30] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(matches!(file.read(), Err(PinError::Unreadable { .. })));
        assert!(matches!(file.raise(&pin(3)), Err(PinError::Unreadable { .. })));
        let newer = Pin { epoch: 4, ..pin(3) };
        assert!(matches!(file.claim(&newer), Err(PinError::Unreadable { .. })));
    }

    proptest! {
        /// Simulates a power loss in the write of a slot: the file then has the earlier pin or the new one.
        #[test]
        fn a_torn_raise_leaves_the_pin_before_or_the_new_one(
            cut in 0..=SLOT_BYTES, garbage in proptest::option::of(any::<u8>()), raises in 2_u64..6,
        ) {
            let (folder, file) = claimed(1);
            let path = folder.path().join("pin.3");
            (2..=raises).for_each(|size| file.raise(&pin(size)).unwrap());
            let before = fs::read(&path).unwrap();
            file.raise(&pin(raises + 1)).unwrap();
            let after = fs::read(&path).unwrap();
            let slot = before.iter().zip(&after).position(|(a, b)| a != b).unwrap() / SLOT_BYTES * SLOT_BYTES;
            let mut torn = before.clone();
            torn[slot..slot + cut].copy_from_slice(&after[slot..slot + cut]);
            if let Some(garbage) = garbage {
                torn[slot + cut.min(SLOT_BYTES - 1)] = garbage;
            }
            fs::write(&path, torn).unwrap();
            let stands = file.read().unwrap();
            prop_assert!(stands == Some(pin(raises)) || stands == Some(pin(raises + 1)), "{stands:?}");
            file.raise(&pin(raises + 2)).unwrap();
            prop_assert_eq!(file.read().unwrap(), Some(pin(raises + 2)));
        }
    }
}
