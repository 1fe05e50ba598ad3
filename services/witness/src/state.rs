//! What the witness has seen, on disk: one file a log, which is the newest checkpoint with our cosignature.
//!
//! ```text
//! lock             held by the one process that works here
//! vkey             the key to which all this belongs
//! key.pem          that key, unless it is kept elsewhere
//! logs/<hex sha256(origin)>
//! known/<hex sha256(origin)>, empty: this log has a file in logs/
//! forgotten        a checkpoint that this key has cosigned and that is not known here: no start any more
//! forks/<hex sha256(origin)>/<size>.seen, <size>.given.<root>
//! ```
//!
//! A log's file needs no checksum: it carries our own signature, and at a start each is verified. One that is not as
//! it was written, or is gone although `known` names it, ends the start: a witness that forgets may be made to
//! cosign a second history. The order is file, then `known`, then the answer.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use durable::{Access, Lock, LockError, WriteError};
use tlog::MAX_NOTE_BYTES;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::Note;
use tlog::witness::Seen;

use crate::files;
use crate::limits::FORKS;

/// The file that says that a state is not to be gone on from.
const FORGOTTEN: &str = "forgotten";

/// The newest checkpoint of a log that was cosigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    /// What it says.
    pub checkpoint: Checkpoint,
    /// The checkpoint with the log's signatures and our cosignature.
    pub note: Note,
    /// When it was cosigned, in Unix seconds.
    pub time: u64,
}

impl Latest {
    /// As much as a decision needs.
    pub fn seen(&self) -> Seen {
        Seen { size: self.checkpoint.size(), root: self.checkpoint.root() }
    }
}

/// Why the state cannot be worked with.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process works here.
    #[error("another witness works on {0}")]
    Locked(PathBuf),
    /// A file is not what was written.
    #[error("{path}: {flaw}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        flaw: String,
    },
    /// The key has cosigned more than is known here.
    #[error(
        "{0}: this key has cosigned it, and it is not known here: the state is a copy, or the key has another one"
    )]
    Forgotten(PathBuf),
    /// A log's file is gone.
    #[error("{0}: gone, and this log was witnessed here")]
    Gone(PathBuf),
    /// The file system failed.
    #[error("{path}: {error}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A state directory in which nobody else works.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    /// The names in `known`.
    known: Mutex<HashSet<String>>,
    _lock: Lock,
}

impl StateDir {
    /// Takes a directory, which is made if there is none.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        for folder in [path.join("logs"), path.join("known")] {
            durable::make_folder(&folder, Access::Public).map_err(|error| failed(&folder, error))?;
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

    /// A file of the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether any log was witnessed here.
    pub fn is_used(&self) -> Result<bool, StateError> {
        Ok(!names(&self.path.join("logs"))?.is_empty() || !self.known().is_empty())
    }

    /// Everything that this key has cosigned last, verified.
    pub fn load(&self, key: &VerifierKey) -> Result<HashMap<Origin, Latest>, StateError> {
        let folder = self.path.join("logs");
        let mut found = HashMap::new();
        for name in names(&folder)? {
            let path = folder.join(&name);
            if durable::is_aside(&name) || name.ends_with(".new") {
                // Cut short before it took its place: its cosignature never left.
                fs::remove_file(&path).map_err(|error| failed(&path, error))?;
                continue;
            }
            let latest = read_latest(&path, key)?;
            found.insert(latest.checkpoint.origin().clone(), latest);
        }
        self.compare_with_known(&found)?;
        Ok(found)
    }

    /// Replaces what is known of a log. Once `Ok`, it survives power loss, and the cosignature may leave.
    pub fn keep(&self, latest: &Latest) -> Result<(), WriteError> {
        let digest = latest.checkpoint.origin().digest();
        durable::replace(&self.log(&digest), latest.note.to_string().as_bytes(), Access::Public)?;
        self.mark(digest)
    }

    /// Keeps what proves that this state is not all that its key has cosigned: nobody starts from it any more.
    pub fn keep_forgotten(&self, note: &Note) -> Result<(), WriteError> {
        durable::replace(&self.path.join(FORGOTTEN), note.to_string().as_bytes(), Access::Public)
    }

    /// Keeps what proves that a log has two trees of one size. Gives the folder; `None` if it holds enough already.
    pub fn keep_fork(
        &self,
        seen: &Latest,
        given: &Checkpoint,
        note: &Note,
    ) -> Result<Option<PathBuf>, StateError> {
        let folder = self.path.join("forks").join(given.origin().digest());
        durable::make_folder(&folder, Access::Public).map_err(|error| failed(&folder, error))?;
        let kept = fs::read_dir(&folder).map_err(|error| failed(&folder, error))?.count();
        let size = given.size();
        let (ours, theirs) = (format!("{size}.seen"), format!("{size}.given.{}", given.root()));
        if kept >= 2 * FORKS || folder.join(&theirs).exists() {
            return Ok(None);
        }
        for (name, note) in [(ours, &seen.note), (theirs, note)] {
            durable::replace(&folder.join(name), note.to_string().as_bytes(), Access::Public)?;
        }
        Ok(Some(folder))
    }

    /// Enters a log in `known`, after its file.
    fn mark(&self, digest: String) -> Result<(), WriteError> {
        if self.known().contains(&digest) {
            return Ok(());
        }
        durable::mark(&self.path.join("known").join(&digest))?;
        self.known().insert(digest);
        Ok(())
    }

    /// Every log that is known must have its file. One that has a file and is not known was cut short between the two.
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

/// The names in a folder.
fn names(folder: &Path) -> Result<Vec<String>, StateError> {
    let found = fs::read_dir(folder).map_err(|error| failed(folder, error))?;
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    found.map(name).collect::<io::Result<_>>().map_err(|error| failed(folder, error))
}

fn lock(directory: &Path) -> Result<Lock, StateError> {
    let path = directory.join("lock");
    Lock::take(&path, Access::Public).map_err(|error| match error {
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
