//! What the monitor remembers: one folder for all logs under one lock, one folder in it for each log.
//!
//! ```text
//! <state_dir>/lock                one monitor at a time
//! <state_dir>/<log>/state.json    what was verified, with the note as it came
//! <state_dir>/<log>/checkpoint    that note alone: another monitor's vantage point
//! ```
//!
//! The state is trusted as its folder is, but for what can be checked: the note in it must be signed by the key that is
//! configured. A state of another log is refused; one that is older than it was is no harm, since all is verified from
//! there on; a lost one is a new beginning, and said to be one.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use durable::{Access, Lock, LockError};
use merkle::{CompactRange, Hash, RootHash, TreeSize};
use serde::{Deserialize, Serialize};
use tlog::checkpoint::Checkpoint;

use crate::config::Target;
use crate::evidence::Sighting;
use crate::limits::{MAX_STATE_BYTES, MAX_TROUBLES, MAX_UNPROVEN};
use crate::seen::Seen;

/// The form of the state that this release writes and reads.
const VERSION: u32 = 1;

/// Why there is no state to go on from.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another monitor works in this folder.
    #[error("another monitor works in {}", .0.display())]
    Taken(PathBuf),
    /// A file or folder cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// It is no state, or of another release.
    #[error("{} is not a state that this release can go on from: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// It is of another log, or of another key.
    #[error("{} is the state of another log: it has {kept}, and {configured} is configured", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it has.
        kept: String,
        /// What it should have.
        configured: String,
    },
}

/// A monitor's folder, locked.
#[derive(Debug)]
pub struct StateDir {
    folder: PathBuf,
    /// Held as long as the folder is used.
    _lock: Lock,
}

impl StateDir {
    /// Takes the folder, which is made if there is none.
    ///
    /// # Errors
    /// If another monitor has it, or it cannot be made.
    pub fn take(folder: &Path) -> Result<Self, StateError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |why: io::Error| StateError::File { path, why }
        };
        durable::make_folder(folder, Access::Secret).map_err(failed(folder))?;
        let path = folder.join("lock");
        let lock = Lock::take(&path, Access::Secret).map_err(|error| match error {
            LockError::Taken => StateError::Taken(folder.to_owned()),
            LockError::Io(why) => failed(&path)(why),
        })?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// The folder of a log.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn log(&self, name: &str) -> Result<LogFolder, StateError> {
        let folder = self.folder.join(name);
        durable::make_folder(&folder, Access::Secret)
            .map_err(|why| StateError::File { path: folder.clone(), why })?;
        Ok(LogFolder { folder })
    }
}

/// Where one log's state is.
#[derive(Clone, Debug)]
pub struct LogFolder {
    folder: PathBuf,
}

impl LogFolder {
    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What is remembered of this log; `None` if nothing is.
    ///
    /// # Errors
    /// If it cannot be read, or is another log's.
    pub fn load(&self, target: &Target) -> Result<Option<LogState>, StateError> {
        let path = self.file("state.json");
        let Some(bytes) = self.read("state.json")? else { return Ok(None) };
        let unreadable = |why: String| StateError::Unreadable { path: path.clone(), why };
        let mut state: LogState =
            serde_json::from_slice(&bytes).map_err(|why| unreadable(why.to_string()))?;
        if state.version != VERSION {
            return Err(unreadable(format!("version {}", state.version)));
        }
        let foreign = |kept: &str, configured: String| {
            Err(StateError::Foreign { path: path.clone(), kept: kept.to_owned(), configured })
        };
        if state.origin != target.origin.to_string() {
            return foreign(&state.origin, target.origin.to_string());
        }
        if !target.all_keys().iter().any(|key| key.to_string() == state.vkey) {
            return foreign(&state.vkey, target.vkey.to_string());
        }
        // The log's key was replaced since.
        state.vkey = target.vkey.to_string();
        state.check(target).map(|()| Some(state)).map_err(unreadable)
    }

    /// A file's bytes; `None` if there is none.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StateError> {
        let path = self.file(name);
        durable::read(&path, MAX_STATE_BYTES).map_err(|why| StateError::File { path, why })
    }

    /// Puts a file in the place of what was there.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        let path = self.file(name);
        durable::replace(&path, bytes, Access::Secret)
            .map_err(|why| StateError::File { path, why: why.into() })
    }

    /// Remembers. Once `Ok`, it survives power loss.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, state: &LogState) -> Result<(), StateError> {
        let json = serde_json::to_vec_pretty(state).unwrap_or_default();
        self.write("state.json", &json)?;
        match &state.verified {
            Some(verified) => self.write("checkpoint", verified.seen.note.as_bytes()),
            None => Ok(()),
        }
    }
}

/// What is remembered of one log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogState {
    version: u32,
    origin: String,
    vkey: String,
    /// How watching began.
    pub began: Option<Beginning>,
    /// The newest checkpoint that everything since the beginning is proven consistent with.
    pub verified: Option<Verified>,
    /// How far the entries make the roots that were signed.
    pub entries: Option<Edge>,
    /// The newest time at which a known witness cosigned what was verified.
    pub cosigned_at: Option<u64>,
    /// What does not work, and since when.
    troubles: BTreeMap<String, u64>,
    /// What the vantage points showed last that agreed: size and root.
    pub agreed: BTreeMap<String, (u64, String)>,
    /// What vantage points showed that was not shown here yet: since when, and of which size.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ahead: BTreeMap<String, (u64, u64)>,
    /// Checkpoints that the log signed and that could not be proven when they were seen: each is compared again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unproven: Vec<Verified>,
}

/// How watching began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beginning {
    /// When, in Unix seconds.
    pub at: u64,
    /// With how many leaves.
    pub size: u64,
    /// Why that tree was believed.
    pub because: Because,
}

/// Why the first tree was believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// Its checkpoint was given.
    Given,
    /// It was the first that was shown.
    FirstShown,
    /// It is the empty tree.
    Empty,
}

/// A checkpoint that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// Leaves.
    pub size: u64,
    /// The root, hex.
    pub root: String,
    /// The note as it came: what shows a fork if the log ever denies it.
    pub seen: Sighting,
}

/// The right edge of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// Leaves.
    pub size: u64,
    /// The perfect subtrees, largest first, hex.
    pub hashes: Vec<String>,
}

impl LogState {
    /// Nothing is remembered yet.
    pub fn new(target: &Target) -> Self {
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
        }
    }

    /// What does not work, and since when.
    pub fn troubles(&self) -> &BTreeMap<String, u64> {
        &self.troubles
    }

    /// Notes that something does not work; for how many seconds it has not.
    pub(crate) fn trouble(&mut self, what: &str, now: u64) -> u64 {
        if self.troubles.len() >= MAX_TROUBLES && !self.troubles.contains_key(what) {
            return 0;
        }
        let since = self.troubles.entry(what.to_owned()).or_insert(now);
        // A clock that was ahead and is right again: what began in the future began now.
        *since = now.min(*since);
        now - *since
    }

    /// Notes that it works.
    pub(crate) fn works(&mut self, what: &str) {
        self.troubles.remove(what);
    }

    /// Keeps a checkpoint that the log signed and that is not proven. Once there is no room the first ones stay, and the
    /// newest: a log does not get rid of what it signed by signing more.
    pub(crate) fn doubt(&mut self, seen: &Seen) {
        let one = Verified::of(seen);
        let is_same = |known: &Verified| (known.size, &known.root) == (one.size, &one.root);
        if self.unproven.iter().chain(&self.verified).any(is_same) {
            return;
        }
        self.unproven.truncate(MAX_UNPROVEN - 1);
        self.unproven.push(one);
    }

    /// Notes that a vantage point shows a larger tree than is shown here; for how many seconds the first such tree has not
    /// come. Once that one is verified here, what follows it has its own time.
    pub(crate) fn behind(&mut self, name: &str, size: u64, now: u64) -> u64 {
        self.caught_up(name);
        let (since, _) = self.ahead.entry(name.to_owned()).or_insert((now, size));
        *since = now.min(*since);
        now - *since
    }

    /// Forgets what a vantage point was ahead by, if it is verified here.
    pub(crate) fn caught_up(&mut self, name: &str) {
        let size = self.verified.as_ref().map_or(0, |verified| verified.size);
        if self.ahead.get(name).is_some_and(|(_, awaited)| *awaited <= size) {
            self.ahead.remove(name);
        }
    }

    /// The notes must be the configured log's, and of what the state says; the edge must be one. A retired key counts at any
    /// size: it may have been marked as compromised after its checkpoint was verified.
    fn check(&self, target: &Target) -> Result<(), String> {
        for verified in self.verified.iter().chain(&self.unproven) {
            let note = verified.seen.note.as_bytes();
            let checkpoint =
                Checkpoint::open(note, &target.origin, &target.all_keys()).map_err(|why| why.to_string())?;
            if verified.head() != Some((checkpoint.size(), checkpoint.root())) {
                return Err("it says otherwise than the checkpoint in it".into());
            }
        }
        self.entries.as_ref().map_or(Ok(()), |edge| edge.range().map(|_| ()))
    }
}

impl Verified {
    /// Size and root.
    pub fn head(&self) -> Option<(TreeSize, RootHash)> {
        Some((TreeSize::new(self.size), self.root.parse().ok()?))
    }
}

impl Edge {
    /// The edge of a tree.
    pub fn of(range: &CompactRange) -> Self {
        Self { size: range.size().get(), hashes: range.hashes().iter().map(Hash::to_string).collect() }
    }

    /// The edge as it can grow.
    pub fn range(&self) -> Result<CompactRange, String> {
        let hashes = self.hashes.iter().map(|hash| hash.parse::<Hash>()).collect::<Result<Vec<_>, _>>();
        let hashes = hashes.map_err(|why| why.to_string())?;
        CompactRange::from_parts(TreeSize::new(self.size), hashes).map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_does_not_work_has_not_for_as_long_as_the_clock_says_and_never_since_the_future() {
        let mut state = LogState::new(&testing::target());
        assert_eq!((state.trouble("log", 1000), state.trouble("log", 1060)), (0, 60));
        // The clock was a day ahead.
        assert_eq!((state.trouble("tiles", 90_000), state.trouble("tiles", 3_600)), (0, 0));
        assert_eq!(state.trouble("tiles", 3_660), 60);
        state.works("log");
        assert_eq!(state.trouble("log", 2000), 0);
    }

    #[test]
    fn no_more_troubles_are_remembered_than_there_is_room_for() {
        let mut state = LogState::new(&testing::target());
        (0..2 * MAX_TROUBLES).for_each(|n| {
            state.trouble(&n.to_string(), 1);
        });
        assert_eq!(state.troubles().len(), MAX_TROUBLES);
    }

    #[test]
    fn no_more_unproven_checkpoints_are_remembered_than_there_is_room_for_and_the_first_ones_stay() {
        let mut state = LogState::new(&testing::target());
        for size in 1..=2 * MAX_UNPROVEN as u64 {
            let sighting = Sighting { note: String::new(), from: String::new(), at: 0 };
            let root = RootHash::from_bytes([7; 32]);
            let seen = Seen { size: TreeSize::new(size), root, cosigned_at: None, quorum: None, sighting };
            state.doubt(&seen);
            state.doubt(&seen);
        }
        let sizes: Vec<u64> = state.unproven.iter().map(|one| one.size).collect();
        assert_eq!(sizes.len(), MAX_UNPROVEN);
        assert_eq!((sizes[0], sizes.last()), (1, Some(&(2 * MAX_UNPROVEN as u64))));
    }
}
