//! What the witness has seen, on disk: one file a log, which is the newest checkpoint with our cosignature.
//!
//! ```text
//! lock             held by the one process that works here
//! vkey             the key to which all this belongs
//! key.pem          that key, unless it is kept elsewhere
//! origins          every log that has a file, one a line
//! logs/<hex sha256(origin)>
//! forks/<hex sha256(origin)>/<size>.seen, <size>.given.<root>
//! ```
//!
//! A log's file needs no checksum: it carries our own signature, and at a start each is verified. One that is not as
//! it was written, or is gone although `origins` names it, ends the start: a witness that forgets may be made to
//! cosign a second history. The order is file, then `origins`, then the answer.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tlog::MAX_NOTE_BYTES;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::Note;
use tlog::witness::Seen;

use crate::files::{self, Access, WriteError};
use crate::limits::{FORKS, LIST_BYTES};

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
    /// A log's file is gone.
    #[error("{path}: gone, and the log {origin} was witnessed here")]
    Gone {
        /// Where it should be.
        path: PathBuf,
        /// The log.
        origin: Origin,
    },
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
    origins: Mutex<BTreeSet<Origin>>,
    _lock: File,
}

impl StateDir {
    /// Takes a directory, which is made if there is none.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let logs = path.join("logs");
        fs::create_dir_all(&logs).map_err(|error| failed(&logs, error))?;
        files::sync_directory(&logs).map_err(|error| failed(path, error))?;
        let lock = lock(path)?;
        let origins = read_origins(&path.join("origins"))?;
        Ok(Self { path: path.to_owned(), origins: Mutex::new(origins), _lock: lock })
    }

    /// A file of the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether any log was witnessed here.
    pub fn is_used(&self) -> Result<bool, StateError> {
        let folder = self.path.join("logs");
        let mut found = fs::read_dir(&folder).map_err(|error| failed(&folder, error))?;
        Ok(found.next().is_some() || !self.origins().is_empty())
    }

    /// Everything that this key has cosigned last, verified.
    pub fn load(&self, key: &VerifierKey) -> Result<HashMap<Origin, Latest>, StateError> {
        let folder = self.path.join("logs");
        let mut found = HashMap::new();
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, error))? {
            let path = entry.map_err(|error| failed(&folder, error))?.path();
            if path.extension().is_some_and(|extension| extension == "new") {
                // Cut short before it took its place: its cosignature never left.
                fs::remove_file(&path).map_err(|error| failed(&path, error))?;
                continue;
            }
            let latest = read_latest(&path, key)?;
            found.insert(latest.checkpoint.origin().clone(), latest);
        }
        self.compare_with_origins(&found)?;
        Ok(found)
    }

    /// Replaces what is known of a log. Once `Ok`, it survives power loss, and the cosignature may leave.
    pub fn keep(&self, latest: &Latest) -> Result<(), WriteError> {
        let origin = latest.checkpoint.origin();
        files::replace(&self.log(origin), latest.note.to_string().as_bytes(), Access::Public)?;
        self.name(origin)
    }

    /// Keeps what proves that a log has two trees of one size. Gives the folder; `None` if it holds enough already.
    pub fn keep_fork(
        &self,
        seen: &Latest,
        given: &Checkpoint,
        note: &Note,
    ) -> Result<Option<PathBuf>, StateError> {
        let folder = self.path.join("forks").join(given.origin().digest());
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        let kept = fs::read_dir(&folder).map_err(|error| failed(&folder, error))?.count();
        let size = given.size();
        let (ours, theirs) = (format!("{size}.seen"), format!("{size}.given.{}", given.root()));
        if kept >= 2 * FORKS || folder.join(&theirs).exists() {
            return Ok(None);
        }
        for (name, note) in [(ours, &seen.note), (theirs, note)] {
            files::replace(&folder.join(name), note.to_string().as_bytes(), Access::Public)?;
        }
        Ok(Some(folder))
    }

    /// Enters a log in `origins`, after its file.
    fn name(&self, origin: &Origin) -> Result<(), WriteError> {
        let mut origins = self.origins();
        if origins.contains(origin) {
            return Ok(());
        }
        let mut named = origins.clone();
        named.insert(origin.clone());
        self.write_origins(&named)?;
        *origins = named;
        Ok(())
    }

    fn write_origins(&self, origins: &BTreeSet<Origin>) -> Result<(), WriteError> {
        let text: String = origins.iter().map(|origin| format!("{origin}\n")).collect();
        files::replace(&self.path.join("origins"), text.as_bytes(), Access::Public)
    }

    /// Every log named must have its file. One that has a file and is not named was cut short between the two.
    fn compare_with_origins(&self, found: &HashMap<Origin, Latest>) -> Result<(), StateError> {
        let mut origins = self.origins();
        if let Some(origin) = origins.iter().find(|origin| !found.contains_key(origin)) {
            return Err(StateError::Gone { path: self.log(origin), origin: origin.clone() });
        }
        if origins.len() < found.len() {
            let named = found.keys().cloned().collect();
            self.write_origins(&named)?;
            *origins = named;
        }
        Ok(())
    }

    fn log(&self, origin: &Origin) -> PathBuf {
        self.path.join("logs").join(origin.digest())
    }

    fn origins(&self) -> std::sync::MutexGuard<'_, BTreeSet<Origin>> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(directory: &Path) -> Result<File, StateError> {
    let path = directory.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| failed(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StateError::Locked(directory.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed(&path, error)),
    }
}

fn read_origins(path: &Path) -> Result<BTreeSet<Origin>, StateError> {
    let damaged = || StateError::Damaged { path: path.to_owned(), flaw: "not a list of origins".into() };
    let Some(bytes) = files::read(path, LIST_BYTES).map_err(|error| failed(path, error))? else {
        return Ok(BTreeSet::new());
    };
    let text = String::from_utf8(bytes).map_err(|_| damaged())?;
    text.split_terminator('\n').map(|line| line.parse().map_err(|_| damaged())).collect()
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
