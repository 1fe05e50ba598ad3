//! The monitor's state directory: one lock for all logs, and one folder for each log.
//!
//! ```text
//! <state_dir>/lock                one monitor at a time
//! <state_dir>/<log>/state.json    the last verified checkpoint, with its note
//! <state_dir>/<log>/checkpoint    that note alone, as a vantage point for another monitor
//! ```
//!
//! The state is as trustworthy as its folder, except for the note in it: it must be signed by a configured key. The
//! state of another log is refused. An older copy of the state is harmless, since everything after it is verified
//! again. Without a state the monitor starts anew and reports this.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use durable::{FileAccess, Lock, LockError};
use merkle::{CompactRange, Hash, TreeSize};
use serde::{Deserialize, Serialize};
use tlog::checkpoint::{Checkpoint, CheckpointError};

use crate::config::WatchedLog;
use crate::evidence::Sighting;
use crate::limits::{MAX_STATE_BYTES, MAX_TROUBLES, MAX_UNPROVEN};
use crate::signed_checkpoint::{SignedCheckpoint, TreeHead};

/// Version of the state file format.
const VERSION: u32 = 1;

/// Errors of the state directory.
#[derive(Debug, thiserror::Error)]
pub enum MonitorStateError {
    /// Another monitor uses this state directory.
    #[error("another monitor uses {}", .0.display())]
    Taken(PathBuf),
    /// A file or folder cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Path of the file or folder.
        path: PathBuf,
        /// The underlying error.
        why: io::Error,
    },
    /// The file is not a valid state, or has another version.
    #[error("{} is not a state from which this release can continue: {why}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the rejection.
        why: String,
    },
    /// The state belongs to another log or another key.
    #[error("{} is the state of another log: it has {kept}, but {configured} is configured", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// The saved origin or key.
        kept: String,
        /// The configured origin or key.
        configured: String,
    },
}

/// A locked state directory.
#[derive(Debug)]
pub struct MonitorStateDir {
    folder: PathBuf,
    /// Keeps the directory locked.
    _lock: Lock,
}

impl MonitorStateDir {
    /// Locks the directory; creates it if it does not exist.
    ///
    /// # Errors
    /// [`MonitorStateError::Taken`] if another monitor holds it, [`MonitorStateError::File`] if it cannot be created.
    pub fn take(folder: &Path) -> Result<Self, MonitorStateError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |why: io::Error| MonitorStateError::File { path, why }
        };
        durable::make_folder(folder, FileAccess::Secret).map_err(failed(folder))?;
        let path = folder.join("lock");
        let lock = Lock::take(&path, FileAccess::Secret).map_err(|error| match error {
            LockError::Taken => MonitorStateError::Taken(folder.to_owned()),
            LockError::Io(why) => failed(&path)(why),
        })?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// The folder of a log or SCITT service; created if it does not exist.
    ///
    /// # Errors
    /// [`MonitorStateError::File`] if it cannot be created.
    pub fn log(&self, name: &str) -> Result<LogFolder, MonitorStateError> {
        let folder = self.folder.join(name);
        durable::make_folder(&folder, FileAccess::Secret)
            .map_err(|why| MonitorStateError::File { path: folder.clone(), why })?;
        Ok(LogFolder { folder })
    }
}

/// The folder of one log's state.
#[derive(Clone, Debug)]
pub struct LogFolder {
    folder: PathBuf,
}

impl LogFolder {
    /// Path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Loads the state of this log; `None` if the file does not exist.
    ///
    /// # Errors
    /// [`MonitorStateError`] if the file is unreadable, or its origin, key or note is not the configured log's.
    pub fn load(&self, target: &WatchedLog) -> Result<Option<LogState>, MonitorStateError> {
        let path = self.file("state.json");
        let Some(bytes) = self.read("state.json")? else { return Ok(None) };
        let unreadable = |why: String| MonitorStateError::Unreadable { path: path.clone(), why };
        let mut state: LogState =
            serde_json::from_slice(&bytes).map_err(|why| unreadable(why.to_string()))?;
        if state.version != VERSION {
            return Err(unreadable(format!("version {}", state.version)));
        }
        let foreign = |kept: &str, configured: String| {
            Err(MonitorStateError::Foreign { path: path.clone(), kept: kept.to_owned(), configured })
        };
        if state.origin != target.origin.to_string() {
            return foreign(&state.origin, target.origin.to_string());
        }
        if !target.all_keys().iter().any(|key| key.to_string() == state.vkey) {
            return foreign(&state.vkey, target.vkey.to_string());
        }
        // The log's key may have been replaced since the state was saved.
        state.vkey = target.vkey.to_string();
        state.check(target).map(|()| Some(state)).map_err(unreadable)
    }

    /// Reads a file of at most [`MAX_STATE_BYTES`]; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, MonitorStateError> {
        self.read_within(name, MAX_STATE_BYTES)
    }

    /// Reads a file of at most `most` bytes; `None` if it does not exist.
    pub(crate) fn read_within(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, MonitorStateError> {
        let path = self.file(name);
        durable::read(&path, most).map_err(|why| MonitorStateError::File { path, why })
    }

    /// Replaces a file atomically.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), MonitorStateError> {
        let path = self.file(name);
        durable::replace(&path, bytes, FileAccess::Secret)
            .map_err(|why| MonitorStateError::File { path, why: why.into() })
    }

    /// Saves the state. Once `Ok`, it survives power loss.
    ///
    /// # Errors
    /// [`MonitorStateError::File`] if a file cannot be written.
    pub fn keep(&self, state: &LogState) -> Result<(), MonitorStateError> {
        let json = serde_json::to_vec_pretty(state).unwrap_or_default();
        self.write("state.json", &json)?;
        match &state.verified {
            Some(verified) => self.write("checkpoint", verified.seen.note.as_bytes()),
            None => Ok(()),
        }
    }
}

/// The saved state of one log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogState {
    version: u32,
    origin: String,
    vkey: String,
    /// The start of watching.
    pub began: Option<WatchStart>,
    /// The newest checkpoint that is proven consistent with all before it.
    pub verified: Option<SavedCheckpoint>,
    /// Right edge of the entries that were checked against a signed root.
    pub entries: Option<Edge>,
    /// Time of the newest cosignature by a known witness on a verified checkpoint, in Unix seconds.
    pub cosigned_at: Option<u64>,
    /// Start times of ongoing troubles, by name.
    troubles: BTreeMap<String, u64>,
    /// Last checkpoint of each vantage point that was proven to be a prefix of a verified tree: size and root.
    pub agreed: BTreeMap<String, (u64, String)>,
    /// Larger trees that vantage points show: the time of the first sighting, and its size.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ahead: BTreeMap<String, (u64, u64)>,
    /// Signed checkpoints that could not be proven when they were seen; compared again in later rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unproven: Vec<SavedCheckpoint>,
    /// The one of `unproven` that an alarm of the present round names; [forgotten](Self::forget_contradicted) once the
    /// alarm is saved.
    #[serde(skip)]
    pub(crate) contradicted: Option<TreeHead>,
}

/// The start of watching a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchStart {
    /// Time in Unix seconds.
    pub at: u64,
    /// Tree size: the number of leaves.
    pub size: u64,
    /// Reason for trusting that tree.
    pub because: TrustReason,
}

/// Reasons for trusting the first tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustReason {
    /// The checkpoint was configured (`start`).
    Given,
    /// The first checkpoint that the log showed, without proof.
    FirstShown,
    /// The empty tree, which needs no trust.
    Empty,
}

/// A checkpoint in the state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedCheckpoint {
    /// Tree size: the number of leaves.
    pub size: u64,
    /// The root hash, in hex.
    pub root: String,
    /// The note as received: evidence of a fork if the log later denies it.
    pub seen: Sighting,
}

/// The right edge of a tree: a compact range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// Tree size: the number of leaves.
    pub size: u64,
    /// Roots of the perfect subtrees, largest first, in hex.
    pub hashes: Vec<String>,
}

impl LogState {
    /// The empty state of a log.
    pub fn new(target: &WatchedLog) -> Self {
        Self {
            version: VERSION,
            origin: target.origin.to_string(),
            vkey: target.vkey.to_string(),
            began: None,
            verified: None,
            entries: None,
            cosigned_at: None,
            troubles: BTreeMap::new(),
            agreed: BTreeMap::new(),
            ahead: BTreeMap::new(),
            unproven: Vec::new(),
            contradicted: None,
        }
    }

    /// Start times of ongoing troubles (Unix seconds), by name.
    pub fn troubles(&self) -> &BTreeMap<String, u64> {
        &self.troubles
    }

    /// Records an ongoing trouble; returns its duration in seconds. 0 for a new one beyond [`MAX_TROUBLES`].
    pub(crate) fn record_trouble(&mut self, what: &str, now: u64) -> u64 {
        if self.troubles.len() >= MAX_TROUBLES && !self.troubles.contains_key(what) {
            return 0;
        }
        let since = self.troubles.entry(what.to_owned()).or_insert(now);
        // After a correction of a clock that was ahead, a start in the future becomes the current time.
        *since = now.min(*since);
        now - *since
    }

    /// Removes a trouble once the operation has succeeded.
    pub(crate) fn end_trouble(&mut self, what: &str) {
        self.troubles.remove(what);
    }

    /// Remembers a signed checkpoint that is not proven. Returns `false` if there is no room: the log or a vantage point
    /// has shown [`MAX_UNPROVEN`] others. These stay, so that a log cannot displace them by signing more.
    pub(crate) fn remember_unproven(&mut self, seen: &SignedCheckpoint) -> bool {
        let one = SavedCheckpoint::of(seen);
        let is_same = |known: &SavedCheckpoint| (known.size, &known.root) == (one.size, &one.root);
        if self.unproven.iter().chain(&self.verified).any(is_same) {
            return true;
        }
        let from_there = self.unproven.iter().filter(|known| known.seen.from == one.seen.from).count();
        if from_there >= MAX_UNPROVEN {
            return false;
        }
        self.unproven.push(one);
        true
    }

    /// Forgets one checkpoint of this place that no configured key has signed, to make room. Returns `true` if there is
    /// one.
    pub(crate) fn forget_unreadable(&mut self, target: &WatchedLog, from: &str) -> bool {
        let is_unreadable =
            |known: &SavedCheckpoint| known.seen.from == from && known.signed_head(target).is_err();
        let found = self.unproven.iter().position(is_unreadable);
        found.map(|at| self.unproven.remove(at)).is_some()
    }

    /// Forgets the checkpoint that the round's alarm of a fork names, once the alarm is saved: its evidence has both
    /// notes, and the alarm stands until it is reset. Returns `true` if there is one.
    pub(crate) fn forget_contradicted(&mut self) -> bool {
        let Some(head) = self.contradicted.take() else { return false };
        self.unproven.retain(|one| one.head() != Some(head));
        true
    }

    /// Records that a vantage point shows a larger tree; returns for how many seconds its first larger tree has not
    /// been verified here. Once that is verified, later trees get their own start time.
    pub(crate) fn record_larger_tree(&mut self, name: &str, size: u64, now: u64) -> u64 {
        self.forget_larger_tree(name);
        let (since, _) = self.ahead.entry(name.to_owned()).or_insert((now, size));
        *since = now.min(*since);
        now - *since
    }

    /// Removes the record of a vantage point's larger tree once a tree of that size is verified here.
    pub(crate) fn forget_larger_tree(&mut self, name: &str) {
        let size = self.verified.as_ref().map_or(0, |verified| verified.size);
        if self.ahead.get(name).is_some_and(|(_, awaited)| *awaited <= size) {
            self.ahead.remove(name);
        }
    }

    /// Checks that the notes match the state, that the verified one is the configured log's, and that the edge is valid.
    fn check(&self, target: &WatchedLog) -> Result<(), String> {
        for saved in self.verified.iter().chain(&self.unproven) {
            match saved.signed_head(target) {
                Ok(signed) if saved.head() == Some(signed) => {}
                Ok(_) => return Err("its size or root differs from the checkpoint in it".into()),
                Err(why) if self.verified.as_ref() == Some(saved) => return Err(why.to_string()),
                Err(why) => tracing::warn!(
                    log = %target.name,
                    size = saved.size,
                    "a checkpoint that was shown without a proof is not compared: {why}"
                ),
            }
        }
        self.entries.as_ref().map_or(Ok(()), |edge| edge.range().map(|_| ()))
    }
}

impl SavedCheckpoint {
    /// The checkpoint in the form of the state file.
    pub(crate) fn of(signed: &SignedCheckpoint) -> Self {
        Self { size: signed.size.get(), root: signed.root.to_string(), seen: signed.sighting.clone() }
    }

    /// Size and root in the note, if it is signed by a configured key. A retired key counts at any size: it may have been
    /// marked as compromised after its checkpoint was verified.
    pub(crate) fn signed_head(&self, target: &WatchedLog) -> Result<TreeHead, CheckpointError> {
        let checkpoint = Checkpoint::open(self.seen.note.as_bytes(), &target.origin, &target.all_keys())?;
        Ok(TreeHead { size: checkpoint.size(), root: checkpoint.root() })
    }

    /// Size and root; `None` if the saved root is malformed.
    pub fn head(&self) -> Option<TreeHead> {
        Some(TreeHead { size: TreeSize::new(self.size), root: self.root.parse().ok()? })
    }
}

impl Edge {
    /// The right edge of a compact range.
    pub fn of(range: &CompactRange) -> Self {
        Self { size: range.size().get(), hashes: range.hashes().iter().map(Hash::to_string).collect() }
    }

    /// The compact range, to which leaves can be appended.
    pub fn range(&self) -> Result<CompactRange, String> {
        let hashes = self.hashes.iter().map(|hash| hash.parse::<Hash>()).collect::<Result<Vec<_>, _>>();
        let hashes = hashes.map_err(|why| why.to_string())?;
        CompactRange::from_parts(TreeSize::new(self.size), hashes).map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use merkle::RootHash;

    use super::*;
    use crate::testing;

    #[test]
    fn a_trouble_lasts_as_long_as_the_clock_says_and_never_began_in_the_future() {
        let mut state = LogState::new(&testing::target());
        assert_eq!((state.record_trouble("log", 1000), state.record_trouble("log", 1060)), (0, 60));
        // The clock was ahead by a day.
        assert_eq!((state.record_trouble("tiles", 90_000), state.record_trouble("tiles", 3_600)), (0, 0));
        assert_eq!(state.record_trouble("tiles", 3_660), 60);
        state.end_trouble("log");
        assert_eq!(state.record_trouble("log", 2000), 0);
    }

    #[test]
    fn no_more_troubles_are_remembered_than_there_is_room_for() {
        let mut state = LogState::new(&testing::target());
        (0..2 * MAX_TROUBLES).for_each(|n| {
            state.record_trouble(&n.to_string(), 1);
        });
        assert_eq!(state.troubles().len(), MAX_TROUBLES);
    }

    #[test]
    fn no_more_unproven_checkpoints_of_a_place_are_remembered_than_there_is_room_for_and_the_first_ones_stay()
    {
        let mut state = LogState::new(&testing::target());
        let seen = |size: u64, from: &str| SignedCheckpoint {
            size: TreeSize::new(size),
            root: RootHash::from_bytes([7; 32]),
            cosigned_at: None,
            quorum: None,
            sighting: Sighting { note: String::new(), from: from.to_owned(), at: 0 },
        };
        let most = MAX_UNPROVEN as u64;
        for size in 1..=2 * most {
            assert_eq!(state.remember_unproven(&seen(size, "log")), size <= most, "{size}");
        }
        assert!(state.remember_unproven(&seen(1, "log")), "it is remembered already");
        assert!(state.remember_unproven(&seen(2 * most, "a witness")));
        let sizes: Vec<u64> = state.unproven.iter().map(|one| one.size).collect();
        assert_eq!(sizes, (1..=most).chain([2 * most]).collect::<Vec<_>>());
    }
}
