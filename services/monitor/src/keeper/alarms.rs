//! Alarms that stand, and those that were over lately: one file, read and written under a lock of its own.
//!
//! The lock is held for one change only: `tabellion monitor reset` works beside a running monitor, and whoever only reads
//! needs none, for the file is replaced as a whole.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use durable::{Access, Lock, LockError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::alarm::{About, Alarm, AlarmKey, AlarmKind};
use crate::evidence::Evidence;
use crate::limits::{MAX_ALARMS_BYTES, MAX_ALARMS_OF_KIND, MAX_ALARMS_OVER};
use crate::round::Round;

/// The form of the file.
const VERSION: u32 = 1;
/// Its name.
const FILE: &str = "alarms.json";
/// How long another change may take.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// How it is with an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It stands.
    Raised,
    /// It is seen no more, and is of a kind that passes.
    Cleared,
    /// Somebody has looked at it.
    Reset,
}

/// An alarm with its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Names this alarm, and no other before or after.
    pub id: String,
    /// How it is.
    pub state: State,
    /// What is wrong. Its evidence lies in the file.
    #[serde(flatten)]
    pub alarm: Alarm,
    /// In how many rounds it was seen.
    pub times: u64,
    /// The file of its evidence, below the state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_file: Option<String>,
    /// Whether that is a contradiction, which needs nobody's word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
    /// When it was over, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_at: Option<u64>,
    /// What somebody wrote who looked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// What to take back, and why.
#[derive(Clone, Debug)]
pub struct Reset {
    /// The alarms' names; empty: all of them.
    pub ids: Vec<String>,
    /// Only those of this log.
    pub log: Option<String>,
    /// What was found when somebody looked.
    pub because: String,
    /// When, in Unix seconds.
    pub at: u64,
}

/// Why the alarms cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AlarmsError {
    /// A file cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// It is not a list of alarms that this release knows.
    #[error("{}: not a list of alarms: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// What was there stays, for nobody could read the longer one again.
    #[error("{}: more than {MAX_ALARMS_BYTES} bytes of alarms: reset some", .0.display())]
    TooLong(PathBuf),
    /// Somebody else changes them and does not go on.
    #[error("{} stays locked", .0.display())]
    Busy(PathBuf),
}

/// All of them.
#[derive(Debug)]
pub struct Alarms {
    path: PathBuf,
    content: Content,
    _lock: Option<Lock>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    standing: Vec<Standing>,
    /// The oldest first.
    over: Vec<Standing>,
}

impl Standing {
    pub(super) fn new(alarm: &Alarm, now: u64, evidence_file: Option<String>) -> Self {
        let key = serde_json::to_vec(&alarm.key()).unwrap_or_default();
        let digest = Sha256::new().chain_update(key).chain_update(now.to_be_bytes()).finalize();
        Self {
            id: data_encoding::HEXLOWER.encode(&digest[..6]),
            state: State::Raised,
            alarm: Alarm { evidence: None, first_seen: now, last_seen: now, ..alarm.clone() },
            times: 1,
            proven: evidence_file.is_some() && matches!(alarm.evidence, Some(Evidence::Contradiction { .. })),
            evidence_file,
            over_at: None,
            because: None,
        }
    }

    fn is(&self, key: &AlarmKey) -> bool {
        self.alarm.key() == *key
    }
}

impl Alarms {
    /// The alarms in a state directory, as they are. Nothing is locked, nothing can be changed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(state_dir: &Path) -> Result<Self, AlarmsError> {
        let path = state_dir.join(FILE);
        let content = read(&path)?;
        Ok(Self { path, content, _lock: None })
    }

    /// The alarms, for a change.
    pub(super) fn lock(state_dir: &Path) -> Result<Self, AlarmsError> {
        durable::make_folder(state_dir, Access::Secret)
            .map_err(|why| AlarmsError::File { path: state_dir.to_owned(), why })?;
        let lock = lock(&state_dir.join("alarms.lock"))?;
        Ok(Self { _lock: Some(lock), ..Self::read(state_dir)? })
    }

    /// Gives the file another name, and so begins a new list.
    pub(super) fn put_aside(state_dir: &Path, now: u64) -> Result<(), AlarmsError> {
        let (path, aside) = (state_dir.join(FILE), state_dir.join(format!("alarms.damaged-{now}.json")));
        std::fs::rename(&path, &aside).map_err(|why| AlarmsError::File { path, why })
    }

    /// Those that stand, in the order in which they were raised.
    pub fn standing(&self) -> &[Standing] {
        &self.content.standing
    }

    /// Those that were over lately, the oldest first.
    pub fn over(&self) -> &[Standing] {
        &self.content.over
    }

    /// The worst of what stands.
    pub fn exit(&self) -> crate::Exit {
        let exits = self.standing().iter().map(|standing| standing.alarm.kind.exit());
        exits.max().unwrap_or(crate::Exit::Success)
    }

    /// Takes alarms back once somebody has looked at them. Their evidence stays where it is.
    ///
    /// # Errors
    /// If the file cannot be changed.
    pub fn reset(state_dir: &Path, reset: &Reset) -> Result<Vec<Standing>, AlarmsError> {
        let mut alarms = Self::lock(state_dir)?;
        let chosen = |standing: &Standing| {
            let named = reset.ids.is_empty() || reset.ids.contains(&standing.id);
            named && reset.log.as_ref().is_none_or(|log| *log == standing.alarm.log)
        };
        let mut taken = alarms.take(chosen);
        for standing in &mut taken {
            standing.state = State::Reset;
            standing.over_at = Some(reset.at);
            standing.because = Some(reset.because.clone());
        }
        alarms.lay_aside(&taken);
        alarms.write()?;
        Ok(taken)
    }

    /// Notes that an alarm is seen again; `false` if it does not stand yet.
    pub(super) fn repeat(&mut self, alarm: &Alarm, now: u64) -> bool {
        let key = alarm.key();
        let Some(standing) = self.content.standing.iter_mut().find(|standing| standing.is(&key)) else {
            return false;
        };
        let better = match alarm.evidence {
            Some(Evidence::Contradiction { .. }) => !standing.proven,
            Some(_) => standing.evidence_file.is_none(),
            None => false,
        };
        if better {
            return false;
        }
        standing.alarm.words.clone_from(&alarm.words);
        standing.alarm.last_seen = now;
        standing.times = standing.times.saturating_add(1);
        true
    }

    /// A new one stands. One with weaker evidence, or none, gives way to the same one with better.
    pub(super) fn stand(&mut self, mut standing: Standing) {
        let key = standing.alarm.key();
        if let Some(old) = self.content.standing.iter_mut().find(|old| old.is(&key)) {
            standing.alarm.first_seen = old.alarm.first_seen;
            standing.times = old.times.saturating_add(1);
            *old = standing;
        } else {
            self.content.standing.push(standing);
        }
    }

    /// Whether an alarm is one too many of its kind and log. What a log or who shows it did itself never is: nobody who only
    /// writes to the log may crowd that out.
    pub(super) fn is_full_for(&self, alarm: &Alarm) -> bool {
        let own = matches!(alarm.about, About::Log | About::Vantage(_));
        if own && alarm.kind.exit() == crate::Exit::Misbehaviour {
            return false;
        }
        let key = alarm.key();
        if self.standing().iter().any(|standing| standing.is(&key)) {
            return false;
        }
        self.counts().filter(|of| *of == (alarm.log.as_str(), alarm.kind)).count() >= MAX_ALARMS_OF_KIND
    }

    /// Those of the round's log that pass, and that the round did not see any more.
    pub(super) fn clear_what_passed(&mut self, round: &Round) -> Vec<Standing> {
        let seen: Vec<AlarmKey> = round.alarms.iter().map(Alarm::key).collect();
        let mut taken = self.take(|standing| {
            let alarm = &standing.alarm;
            alarm.log == round.log && alarm.kind.passes() && !seen.contains(&alarm.key())
        });
        for standing in &mut taken {
            standing.state = State::Cleared;
            standing.over_at = Some(round.at);
        }
        self.lay_aside(&taken);
        taken
    }

    pub(super) fn write(&self) -> Result<(), AlarmsError> {
        let content = Content {
            version: VERSION,
            standing: self.content.standing.clone(),
            over: self.content.over.clone(),
        };
        let file = |why| AlarmsError::File { path: self.path.clone(), why };
        let bytes = serde_json::to_vec_pretty(&content).map_err(|why| file(why.into()))?;
        if bytes.len() as u64 > MAX_ALARMS_BYTES {
            return Err(AlarmsError::TooLong(self.path.clone()));
        }
        durable::replace(&self.path, &bytes, Access::Secret).map_err(|why| file(why.into()))
    }

    /// How many stand of each kind, for each log.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, AlarmKind)> {
        self.standing().iter().map(|standing| (standing.alarm.log.as_str(), standing.alarm.kind))
    }

    fn take(&mut self, chosen: impl Fn(&Standing) -> bool) -> Vec<Standing> {
        let (taken, left) = std::mem::take(&mut self.content.standing).into_iter().partition(chosen);
        self.content.standing = left;
        taken
    }

    /// Remembers some, and forgets the oldest. Evidence of what passed by itself goes with them; what somebody has looked at
    /// keeps its evidence for ever.
    fn lay_aside(&mut self, taken: &[Standing]) {
        self.content.over.extend_from_slice(taken);
        let too_many = self.content.over.len().saturating_sub(MAX_ALARMS_OVER);
        let folder = self.path.parent().unwrap_or(Path::new("")).to_owned();
        for forgotten in self.content.over.drain(..too_many).filter(|over| over.state == State::Cleared) {
            let gone = forgotten.evidence_file.map(|file| durable::remove(&folder.join(file)));
            if let Some(Err(error)) = gone {
                tracing::warn!(%error, id = forgotten.id, "evidence of an alarm that passed was not removed");
            }
        }
    }
}

fn read(path: &Path) -> Result<Content, AlarmsError> {
    let file = |why: io::Error| AlarmsError::File { path: path.to_owned(), why };
    let unreadable = |why: String| AlarmsError::Unreadable { path: path.to_owned(), why };
    let bytes = match durable::read(path, MAX_ALARMS_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Content::default()),
        Err(why) if why.kind() == io::ErrorKind::FileTooLarge => return Err(unreadable(why.to_string())),
        Err(why) => return Err(file(why)),
    };
    let content: Content = serde_json::from_slice(&bytes).map_err(|why| unreadable(why.to_string()))?;
    match content.version {
        VERSION => Ok(content),
        other => Err(unreadable(format!("version {other}"))),
    }
}

fn lock(path: &Path) -> Result<Lock, AlarmsError> {
    Lock::wait(path, Access::Secret, LOCK_PATIENCE).map_err(|error| match error {
        LockError::Taken => AlarmsError::Busy(path.to_owned()),
        LockError::Io(why) => AlarmsError::File { path: path.to_owned(), why },
    })
}
