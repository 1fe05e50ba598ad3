//! The list of alarms: standing alarms and recently ended ones, in one file with its own lock.
//!
//! The lock is held for a single change, so that `tabellion monitor reset` works while a monitor runs. Readers need no
//! lock, because the file is replaced atomically.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use durable::{FileAccess, Lock, LockError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::alarm::{Alarm, AlarmKey, AlarmKind, AlarmSubject};
use crate::evidence::Evidence;
use crate::limits::{MAX_ALARMS_BYTES, MAX_ALARMS_OF_KIND, MAX_ALARMS_OF_LOG, MAX_ALARMS_OVER};
use crate::round::Round;

/// Version of the file format.
const VERSION: u32 = 1;
/// Name of the file in the state directory.
const FILE: &str = "alarms.json";
/// Maximum time to wait for the lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// AlarmState of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlarmState {
    /// The alarm stands.
    Raised,
    /// The cause is no longer observed, and the alarm is of a kind that [`passes`](crate::AlarmKind::passes).
    Cleared,
    /// An operator has examined the alarm and reset it.
    Reset,
}

/// An alarm with its history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmRecord {
    /// Unique ID, in hex; never reused.
    pub id: String,
    /// AlarmState of the alarm.
    pub state: AlarmState,
    /// The alarm without its evidence, which is in `evidence_file`.
    #[serde(flatten)]
    pub alarm: Alarm,
    /// Number of rounds in which the alarm was seen.
    pub times: u64,
    /// Number of sightings of further alarms of this kind and log, which are not stored for lack of room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// Path of the evidence file, relative to the state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_file: Option<String>,
    /// `true` if the evidence [is self-contained proof](Evidence::is_proof).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
    /// Time at which the alarm ended, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_at: Option<u64>,
    /// The operator's note, for an alarm that was reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// An operator's request to reset alarms.
#[derive(Clone, Debug)]
pub struct AlarmReset {
    /// IDs of the alarms; empty selects all.
    pub ids: Vec<String>,
    /// Restricts the reset to the alarms of this log.
    pub log: Option<String>,
    /// The operator's findings.
    pub because: String,
    /// Time of the reset, in Unix seconds.
    pub at: u64,
}

/// Errors of reading or changing the list of alarms.
#[derive(Debug, thiserror::Error)]
pub enum AlarmsError {
    /// An I/O error.
    #[error("{}: {why}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The underlying error.
        why: io::Error,
    },
    /// The file is not a list of alarms, or has another version.
    #[error("{}: not a list of alarms: {why}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the rejection.
        why: String,
    },
    /// The list would become longer than [`MAX_ALARMS_BYTES`] and thus unreadable; the file is unchanged.
    #[error("{}: more than {MAX_ALARMS_BYTES} bytes of alarms: reset some", .0.display())]
    TooLong(PathBuf),
    /// Another process holds the lock for too long.
    #[error("{} stays locked", .0.display())]
    Busy(PathBuf),
}

/// The list of alarms.
#[derive(Debug)]
pub struct AlarmList {
    path: PathBuf,
    content: Content,
    _lock: Option<Lock>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    standing: Vec<AlarmRecord>,
    /// Ended alarms, oldest first.
    over: Vec<AlarmRecord>,
}

impl AlarmRecord {
    pub(crate) fn new(alarm: &Alarm, now: u64, evidence_file: Option<String>) -> Self {
        let key = serde_json::to_vec(&alarm.key()).unwrap_or_default();
        let digest = Sha256::new().chain_update(key).chain_update(now.to_be_bytes()).finalize();
        Self {
            id: data_encoding::HEXLOWER.encode(&digest[..6]),
            state: AlarmState::Raised,
            alarm: Alarm { evidence: None, first_seen: now, last_seen: now, ..alarm.clone() },
            times: 1,
            unlisted: 0,
            proven: evidence_file.is_some() && alarm.evidence.as_ref().is_some_and(Evidence::is_proof),
            evidence_file,
            over_at: None,
            because: None,
        }
    }

    fn is(&self, key: &AlarmKey) -> bool {
        self.alarm.key() == *key
    }
}

impl AlarmList {
    /// Reads the list without locking; the result cannot be changed.
    ///
    /// # Errors
    /// [`AlarmsError::File`] or [`AlarmsError::Unreadable`]; a missing file is an empty list.
    pub fn read(state_dir: &Path) -> Result<Self, AlarmsError> {
        let path = state_dir.join(FILE);
        let content = read(&path)?;
        Ok(Self { path, content, _lock: None })
    }

    /// Locks and reads the list, for a change.
    pub(crate) fn lock(state_dir: &Path) -> Result<Self, AlarmsError> {
        durable::make_folder(state_dir, FileAccess::Secret)
            .map_err(|why| AlarmsError::File { path: state_dir.to_owned(), why })?;
        let lock = lock(&state_dir.join("alarms.lock"))?;
        Ok(Self { _lock: Some(lock), ..Self::read(state_dir)? })
    }

    /// Renames an unreadable file to `alarms.damaged-<now>.json`, which starts a new list.
    pub(crate) fn rename_damaged(state_dir: &Path, now: u64) -> Result<(), AlarmsError> {
        let (path, aside) = (state_dir.join(FILE), state_dir.join(format!("alarms.damaged-{now}.json")));
        std::fs::rename(&path, &aside).map_err(|why| AlarmsError::File { path, why })
    }

    /// AlarmRecord alarms in the order in which they were raised.
    pub fn standing(&self) -> &[AlarmRecord] {
        &self.content.standing
    }

    /// Recently ended alarms, oldest first; at most `MAX_ALARMS_OVER`.
    pub fn over(&self) -> &[AlarmRecord] {
        &self.content.over
    }

    /// The worst exit status of the standing alarms.
    pub fn exit(&self) -> crate::MonitorExit {
        let exits = self.standing().iter().map(|standing| standing.alarm.kind.exit());
        exits.max().unwrap_or(crate::MonitorExit::Success)
    }

    /// Resets the alarms selected by `reset` and returns them. Evidence files are kept.
    ///
    /// # Errors
    /// If the file cannot be locked, read or written.
    pub fn reset(state_dir: &Path, reset: &AlarmReset) -> Result<Vec<AlarmRecord>, AlarmsError> {
        let mut alarms = Self::lock(state_dir)?;
        let chosen = |standing: &AlarmRecord| {
            let named = reset.ids.is_empty() || reset.ids.contains(&standing.id);
            named && reset.log.as_ref().is_none_or(|log| *log == standing.alarm.log)
        };
        let mut taken = alarms.take(chosen);
        for standing in &mut taken {
            standing.state = AlarmState::Reset;
            standing.over_at = Some(reset.at);
            standing.because = Some(reset.because.clone());
        }
        alarms.add_ended(&taken);
        alarms.write()?;
        Ok(taken)
    }

    /// Records another sighting of a standing alarm. Returns `false` if the alarm does not stand yet, or brings better
    /// evidence than the standing one and must be added again.
    pub(crate) fn repeat(&mut self, alarm: &Alarm, now: u64) -> bool {
        let key = alarm.key();
        let Some(standing) = self.content.standing.iter_mut().find(|standing| standing.is(&key)) else {
            return false;
        };
        let better = match &alarm.evidence {
            Some(evidence) if evidence.is_proof() => !standing.proven,
            Some(_) => standing.evidence_file.is_none(),
            None => false,
        };
        if better {
            return false;
        }
        standing.alarm.words.clone_from(&alarm.words);
        standing.alarm.found_by.clone_from(&alarm.found_by);
        standing.alarm.last_seen = now;
        standing.times = standing.times.saturating_add(1);
        true
    }

    /// Returns `true` for a finding of the audit that an operator has reset, in the same words. The audit decides an entry
    /// once and reports what it found in every round, so that this is no new finding.
    pub(crate) fn is_reset_finding(&self, alarm: &Alarm) -> bool {
        let key = alarm.key();
        let is_same = |over: &AlarmRecord| {
            over.state == AlarmState::Reset && over.is(&key) && over.alarm.words == alarm.words
        };
        // Only findings have a discriminator; what else this check says is observed anew in each round.
        let is_finding = alarm.kind == AlarmKind::Decision && !alarm.which.is_empty();
        is_finding && self.over().iter().any(is_same)
    }

    /// Adds an alarm. A standing alarm with the same key is replaced, with its `first_seen` and count kept.
    pub(crate) fn stand(&mut self, mut standing: AlarmRecord) {
        let key = standing.alarm.key();
        if let Some(old) = self.content.standing.iter_mut().find(|old| old.is(&key)) {
            standing.alarm.first_seen = old.alarm.first_seen;
            standing.times = old.times.saturating_add(1);
            standing.unlisted = old.unlisted;
            *old = standing;
        } else {
            self.content.standing.push(standing);
        }
    }

    /// Returns `true` if an alarm cannot be added, because too many of its kind and log stand already:
    /// [`MAX_ALARMS_OF_LOG`] about misbehaviour of the log itself or as seen by one vantage point, else
    /// [`MAX_ALARMS_OF_KIND`]. The two do not count for each other: a party that only writes to the log must not be able
    /// to displace its misbehaviour.
    pub(crate) fn is_full_for(&self, alarm: &Alarm) -> bool {
        let key = alarm.key();
        if self.standing().iter().any(|standing| standing.is(&key)) {
            return false;
        }
        let most = match is_own_misbehaviour(alarm) {
            true => MAX_ALARMS_OF_LOG,
            false => MAX_ALARMS_OF_KIND,
        };
        self.counted_with(alarm).count() >= most
    }

    /// Counts an alarm that cannot be added with the last standing one of its kind and log. Returns `true` if it is the
    /// first one counted there.
    pub(crate) fn count_unlisted(&mut self, alarm: &Alarm) -> bool {
        let last = self.counted_with(alarm).next_back();
        let Some(standing) = last.and_then(|at| self.content.standing.get_mut(at)) else { return true };
        standing.unlisted = standing.unlisted.saturating_add(1);
        standing.unlisted == 1
    }

    /// Positions of the standing alarms of this kind and log that share a limit with this one: for the log's own
    /// misbehaviour those about the same party, else all others.
    fn counted_with(&self, alarm: &Alarm) -> impl DoubleEndedIterator<Item = usize> {
        let is_own = is_own_misbehaviour(alarm);
        let counts = move |other: &Alarm| {
            let is_same = (other.kind, &other.log) == (alarm.kind, &alarm.log);
            is_same && is_own_misbehaviour(other) == is_own && (!is_own || other.about == alarm.about)
        };
        let alarms = self.standing().iter().enumerate();
        alarms.filter(move |(_, standing)| counts(&standing.alarm)).map(|(at, _)| at)
    }

    /// Ends the alarms of the round's log that pass and were not seen in the round although their check was made; returns
    /// them.
    pub(crate) fn clear_what_passed(&mut self, round: &Round) -> Vec<AlarmRecord> {
        let seen: Vec<AlarmKey> = round.alarms.iter().map(Alarm::key).collect();
        let mut taken = self.take(|standing| {
            let alarm = &standing.alarm;
            let was_made = || alarm.found_by.as_ref().is_none_or(|check| round.was_made(check));
            alarm.log == round.log && alarm.kind.passes() && !seen.contains(&alarm.key()) && was_made()
        });
        for standing in &mut taken {
            standing.state = AlarmState::Cleared;
            standing.over_at = Some(round.at);
        }
        self.add_ended(&taken);
        taken
    }

    pub(crate) fn write(&self) -> Result<(), AlarmsError> {
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
        durable::replace(&self.path, &bytes, FileAccess::Secret).map_err(|why| file(why.into()))
    }

    /// The log and kind of each standing alarm, for counting.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, AlarmKind)> {
        self.standing().iter().map(|standing| (standing.alarm.log.as_str(), standing.alarm.kind))
    }

    fn take(&mut self, chosen: impl Fn(&AlarmRecord) -> bool) -> Vec<AlarmRecord> {
        let (taken, left) = std::mem::take(&mut self.content.standing).into_iter().partition(chosen);
        self.content.standing = left;
        taken
    }

    /// Appends ended alarms and removes the oldest beyond [`MAX_ALARMS_OVER`]. The evidence file of a removed alarm is
    /// deleted if it was cleared automatically; after a reset by an operator it is kept.
    fn add_ended(&mut self, taken: &[AlarmRecord]) {
        self.content.over.extend_from_slice(taken);
        let too_many = self.content.over.len().saturating_sub(MAX_ALARMS_OVER);
        let folder = self.path.parent().unwrap_or(Path::new("")).to_owned();
        for forgotten in self.content.over.drain(..too_many).filter(|over| over.state == AlarmState::Cleared)
        {
            let gone = forgotten.evidence_file.map(|file| durable::remove(&folder.join(file)));
            if let Some(Err(error)) = gone {
                tracing::warn!(%error, id = forgotten.id, "evidence of an alarm that passed was not removed");
            }
        }
    }
}

/// Returns `true` for misbehaviour of the log itself, or as a vantage point shows it.
fn is_own_misbehaviour(alarm: &Alarm) -> bool {
    let is_own = matches!(alarm.about, AlarmSubject::Log | AlarmSubject::Vantage(_));
    is_own && alarm.kind.exit() == crate::MonitorExit::Misbehaviour
}

fn is_zero(count: &u64) -> bool {
    *count == 0
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
    Lock::wait(path, FileAccess::Secret, LOCK_PATIENCE).map_err(|error| match error {
        LockError::Taken => AlarmsError::Busy(path.to_owned()),
        LockError::Io(why) => AlarmsError::File { path: path.to_owned(), why },
    })
}
