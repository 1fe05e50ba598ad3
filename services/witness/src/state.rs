//! The witness's state on disk: for each log one file with the newest checkpoint and this witness's cosignature.
//!
//! ```text
//! lock             held by the process that uses the directory
//! vkey             the public key to which the directory belongs
//! key.pem          the signing key, unless configured elsewhere
//! logs/<hex sha256(origin)>
//! known/<hex sha256(origin)>, empty: this log has a file in logs/
//! forgotten        a checkpoint cosigned by this key but unknown to the state: prevents any further start
//! forks/<hex sha256(origin)>/<size>.seen, <size>.given.<root>
//! ```
//!
//! A log's file needs no checksum: it carries this witness's own signature, which is verified at each start. An altered
//! file, or a missing one that `known` lists, aborts the start: a witness that forgets could be made to cosign a second
//! history. Write order: the file, then `known`, then the response.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use durable::{FileAccess, Lock, LockError, WriteError};
use tlog::MAX_NOTE_BYTES;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::Note;
use tlog::witness::SeenTree;

use crate::files;
use crate::limits::FORKS;

/// File that prevents a further start.
const FORGOTTEN: &str = "forgotten";

/// The newest cosigned checkpoint of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    /// The parsed checkpoint.
    pub checkpoint: Checkpoint,
    /// The note with the log's signature and the cosignature.
    pub note: Note,
    /// Time of the cosignature, in Unix seconds.
    pub time: u64,
}

impl Latest {
    /// Size and root, for `tlog::witness::judge`.
    pub fn seen(&self) -> SeenTree {
        SeenTree { size: self.checkpoint.size(), root: self.checkpoint.root() }
    }
}

/// Errors of the state directory.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process holds the file `lock`.
    #[error("another witness works on {0}")]
    Locked(PathBuf),
    /// A file's contents are invalid.
    #[error("{path}: {flaw}")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the rejection.
        flaw: String,
    },
    /// The key has cosigned a checkpoint that is unknown to this state: the file `forgotten` exists.
    #[error(
        "{0}: this key has cosigned it, and it is not known here: the state is a copy, or the key has another one"
    )]
    Forgotten(PathBuf),
    /// The file of a log listed in `known` is missing.
    #[error("{0}: gone, and this log was witnessed here")]
    Gone(PathBuf),
    /// An I/O error.
    #[error("{path}: {error}")]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// The underlying error.
        error: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A locked state directory.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    /// Names in the folder `known`.
    known: Mutex<HashSet<String>>,
    _lock: Lock,
}

impl StateDir {
    /// Locks a directory; creates it if it does not exist.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        for folder in [path.join("logs"), path.join("known")] {
            durable::make_folder(&folder, FileAccess::Public).map_err(|error| failed(&folder, error))?;
            durable::sync_folder_of(&folder).map_err(|error| failed(path, error))?;
        }
        durable::sync_folder_of(path).map_err(|error| failed(path, error))?;
        let lock = lock(path)?;
        let forgotten = path.join(FORGOTTEN);
        if forgotten.exists() {
            return Err(StateError::Forgotten(forgotten));
        }
        let known = names(&path.join("known"))?.into_iter().collect();
        Ok(Self { path: path.to_owned(), known: Mutex::new(known), _lock: lock })
    }

    /// Path of a file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns `true` if any log was witnessed with this directory.
    pub fn is_used(&self) -> Result<bool, StateError> {
        Ok(!names(&self.path.join("logs"))?.is_empty() || !self.known().is_empty())
    }

    /// Loads and verifies the newest checkpoint of each log.
    pub fn load(&self, key: &VerifierKey) -> Result<HashMap<Origin, Latest>, StateError> {
        let folder = self.path.join("logs");
        let mut found = HashMap::new();
        for name in names(&folder)? {
            let path = folder.join(&name);
            if durable::is_temporary(&name) || name.ends_with(".new") {
                // Interrupted before the rename: its cosignature was never sent.
                fs::remove_file(&path).map_err(|error| failed(&path, error))?;
                continue;
            }
            let latest = read_latest(&path, key)?;
            found.insert(latest.checkpoint.origin().clone(), latest);
        }
        self.compare_with_known(&found)?;
        Ok(found)
    }

    /// Saves a log's newest checkpoint. Once `Ok`, it survives power loss, and the cosignature may be sent.
    pub fn keep(&self, latest: &Latest) -> Result<(), WriteError> {
        let digest = latest.checkpoint.origin().digest();
        durable::replace(&self.log(&digest), latest.note.to_string().as_bytes(), FileAccess::Public)?;
        self.mark(digest)
    }

    /// Saves the proof that the key has cosigned something unknown to this state; prevents any further start.
    pub fn keep_forgotten(&self, note: &Note) -> Result<(), WriteError> {
        durable::replace(&self.path.join(FORGOTTEN), note.to_string().as_bytes(), FileAccess::Public)
    }

    /// Saves two checkpoints that prove a fork. Returns the folder; `None` if saved already, or [`FORKS`] are saved.
    pub fn keep_fork(
        &self,
        seen: &Latest,
        given: &Checkpoint,
        note: &Note,
    ) -> Result<Option<PathBuf>, StateError> {
        let folder = self.path.join("forks").join(given.origin().digest());
        durable::make_folder(&folder, FileAccess::Public).map_err(|error| failed(&folder, error))?;
        let kept = fs::read_dir(&folder).map_err(|error| failed(&folder, error))?.count();
        let size = given.size();
        let (ours, theirs) = (format!("{size}.seen"), format!("{size}.given.{}", given.root()));
        if kept >= 2 * FORKS || folder.join(&theirs).exists() {
            return Ok(None);
        }
        for (name, note) in [(ours, &seen.note), (theirs, note)] {
            durable::replace(&folder.join(name), note.to_string().as_bytes(), FileAccess::Public)?;
        }
        Ok(Some(folder))
    }

    /// Adds a log to `known`, after its file was written.
    fn mark(&self, digest: String) -> Result<(), WriteError> {
        if self.known().contains(&digest) {
            return Ok(());
        }
        durable::mark(&self.path.join("known").join(&digest))?;
        self.known().insert(digest);
        Ok(())
    }

    /// Checks that each log in `known` has its file; adds logs whose write was interrupted before `known`.
    fn compare_with_known(&self, found: &HashMap<Origin, Latest>) -> Result<(), StateError> {
        let digests: HashSet<String> = found.keys().map(Origin::digest).collect();
        if let Some(gone) = self.known().difference(&digests).next() {
            return Err(StateError::Gone(self.log(gone)));
        }
        digests.into_iter().try_for_each(|digest| Ok(self.mark(digest)?))
    }

    fn log(&self, digest: &str) -> PathBuf {
        self.path.join("logs").join(digest)
    }

    fn known(&self) -> MutexGuard<'_, HashSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file names in a folder.
fn names(folder: &Path) -> Result<Vec<String>, StateError> {
    let found = fs::read_dir(folder).map_err(|error| failed(folder, error))?;
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    found.map(name).collect::<io::Result<_>>().map_err(|error| failed(folder, error))
}

fn lock(directory: &Path) -> Result<Lock, StateError> {
    let path = directory.join("lock");
    Lock::take(&path, FileAccess::Public).map_err(|error| match error {
        LockError::Taken => StateError::Locked(directory.to_owned()),
        LockError::Io(error) => failed(&path, error),
    })
}

fn read_latest(path: &Path, key: &VerifierKey) -> Result<Latest, StateError> {
    let damaged = |flaw: String| StateError::Damaged { path: path.to_owned(), flaw };
    let bytes = files::read(path, MAX_NOTE_BYTES as u64).map_err(|error| failed(path, error))?;
    let note = Note::parse(&bytes.unwrap_or_default()).map_err(|flaw| damaged(flaw.to_string()))?;
    let time =
        cosignature::verified(&note, key).ok_or_else(|| damaged("not cosigned by this witness".into()))?;
    let checkpoint = Checkpoint::parse_text(note.text()).map_err(|flaw| damaged(flaw.to_string()))?;
    if path.file_name().is_none_or(|name| *name != *checkpoint.origin().digest()) {
        return Err(damaged(format!("another log's name for {}", checkpoint.origin())));
    }
    Ok(Latest { checkpoint, note, time })
}

fn failed(path: &Path, error: io::Error) -> StateError {
    StateError::Io { path: path.to_owned(), error }
}
