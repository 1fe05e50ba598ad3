//! Decides and records cosignatures: for each log, one request at a time is judged, saved and only then answered.
//!
//! All functions block, on a log's lock and on the disk. If the process or the connection ends after a checkpoint was
//! saved and before the response, the log learns of it by a 409 to its next request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use durable::WriteError;
use merkle::TreeSize;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NotANote, Note, NoteSigner, NoteSignerError, SignatureLine};
use tlog::witness::{self, AddCheckpoint, CosignRefusal, SeenTree};
use tokio_util::sync::CancellationToken;

use crate::limits::CLOCK_SLACK;
use crate::list::{Log, LogList};
use crate::pace::Pace;
use crate::state::{Latest, StateDir};

/// Reasons for not cosigning, with the HTTP status.
#[derive(Debug, thiserror::Error)]
pub enum NotCosigned {
    /// 404: the log is not in the list.
    #[error("no such log is witnessed here")]
    UnknownLog,
    /// A rejected request; [`CosignRefusal::status`] is the HTTP status.
    #[error(transparent)]
    Refused(#[from] CosignRefusal),
    /// 429: the log has grown too recently, or a larger tree that was sent earlier takes precedence.
    #[error("this log may grow {per_day} times a day")]
    TooOften {
        /// The configured `qpd`.
        per_day: u32,
        /// Seconds until the next growth is accepted.
        wait: u64,
    },
    /// 503: the clock is behind the last cosignature. A cosignature with an earlier time would contradict that one.
    #[error("the witness's clock is behind its last cosignature")]
    ClockBehind,
    /// 503: the checkpoint could not be saved; the state is unchanged.
    #[error("the checkpoint could not be kept")]
    NotKept(#[source] WriteError),
    /// 500: the contents of the disk are unknown. The process must exit.
    #[error("the witness does not know which state is on its disk")]
    InDoubt,
    /// 500: the key failed to sign.
    #[error(transparent)]
    Sign(#[from] NoteSignerError),
    /// 500: the log's signature and the cosignature do not form a valid note.
    #[error(transparent)]
    Note(#[from] NotANote),
}

/// The cosigned checkpoints of all logs, and the rules for adding one.
pub struct Ledger {
    state: StateDir,
    signer: LocalKey,
    logs: RwLock<Arc<LogList>>,
    /// State of each log, by the digest of its origin.
    pages: Mutex<HashMap<String, Arc<Mutex<LedgerPage>>>>,
    in_doubt: CancellationToken,
}

/// State of one log.
#[derive(Debug, Default)]
struct LedgerPage {
    latest: Option<Latest>,
    /// Rate limiter for growth.
    pace: Pace,
    /// Allows one cosignature with a time before the last one, after the operator's `--clock-was-ahead`.
    goes_back: bool,
}

impl Ledger {
    /// Creates a ledger from the saved state.
    ///
    /// `back_to` is the current time (Unix seconds) if the clock was ahead and has been corrected: logs whose last
    /// cosignature is later than that may get one cosignature with an earlier time. Their checkpoints remain binding.
    pub fn new(
        state: StateDir,
        signer: LocalKey,
        kept: HashMap<Origin, Latest>,
        logs: LogList,
        back_to: Option<u64>,
    ) -> Self {
        let page = |latest: Latest| {
            let goes_back = back_to.is_some_and(|now| latest.time > now);
            Arc::new(Mutex::new(LedgerPage { latest: Some(latest), goes_back, ..LedgerPage::default() }))
        };
        let pages = kept.into_iter().map(|(origin, latest)| (origin.digest(), page(latest))).collect();
        Self {
            state,
            signer,
            logs: RwLock::new(Arc::new(logs)),
            pages: Mutex::new(pages),
            in_doubt: CancellationToken::new(),
        }
    }

    /// The cosigning key.
    pub fn signer(&self) -> &LocalKey {
        &self.signer
    }

    /// The list of witnessed logs.
    pub fn logs(&self) -> Arc<LogList> {
        self.logs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the list of witnessed logs. The state of removed logs is kept.
    pub fn witness(&self, logs: LogList) {
        *self.logs.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(logs);
    }

    /// Returns `true` if the process must exit: see [`NotCosigned::InDoubt`].
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt.is_cancelled()
    }

    /// Resolves when the process must exit.
    pub async fn doubt(&self) {
        self.in_doubt.cancelled().await;
    }

    /// The newest cosigned checkpoint of the log whose origin has this digest; `None` if there is none.
    pub fn latest(&self, digest: &str) -> Option<Latest> {
        let page = lock(&self.pages).get(digest)?.clone();
        lock(&page).latest.clone()
    }

    /// The newest cosigned checkpoint ([`Latest`]) of each log.
    pub fn all(&self) -> Vec<Latest> {
        let pages: Vec<_> = lock(&self.pages).values().cloned().collect();
        pages.iter().filter_map(|page| lock(page).latest.clone()).collect()
    }

    /// Cosigns a checkpoint at `now` (Unix seconds) after saving it.
    pub fn add(&self, request: &AddCheckpoint, now: u64) -> Result<SignatureLine, NotCosigned> {
        let log = self.log_of(request).ok_or(NotCosigned::UnknownLog)?;
        // Verify the signature before locking: unsigned requests of third parties must not block a log.
        let keys = keys_for(&log, &request.checkpoint);
        request.checkpoint.verify(&keys).map_err(CosignRefusal::from)?;
        let page = lock(&self.pages).entry(log.origin.digest()).or_default().clone();
        let mut page = lock(&page);
        if self.is_in_doubt() {
            return Err(NotCosigned::InDoubt);
        }
        let seen = page.latest.as_ref().map(Latest::seen);
        self.must_remember(seen, &request.checkpoint)?;
        let checkpoint = witness::judge(seen, request, &keys);
        let checkpoint = checkpoint.inspect_err(|refusal| self.keep_fork(refusal, &page, request))?;
        if let Some(line) = page.latest.as_ref().and_then(|latest| self.same_second(latest, request, now)) {
            return Ok(line);
        }
        let now = page.not_before(now)?;
        let mut pace = page.pace;
        if let Err(slow) = page.grow(&mut pace, &log, checkpoint.size(), now) {
            page.pace = pace;
            return Err(slow);
        }
        let (latest, line) = self.cosign(&log, checkpoint, &request.checkpoint, now)?;
        self.state.keep(&latest).map_err(|error| self.not_kept(error))?;
        *page = LedgerPage { latest: Some(latest), pace, goes_back: false };
        Ok(line)
    }

    /// Checks that a note with this witness's own cosignature matches the state. If not, the state is an older copy or
    /// another process uses the key, and the witness must stop.
    fn must_remember(&self, seen: Option<SeenTree>, note: &Note) -> Result<(), NotCosigned> {
        let ours = cosignature::verified(note, self.signer.key()).is_some();
        let Some(checkpoint) = Checkpoint::parse_text(note.text()).ok().filter(|_| ours) else {
            return Ok(());
        };
        let known = seen.is_some_and(|seen| match checkpoint.size().cmp(&seen.size) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => checkpoint.root() == seen.root,
            std::cmp::Ordering::Greater => false,
        });
        if known {
            return Ok(());
        }
        tracing::error!(log = %checkpoint.origin(), size = checkpoint.size().get(),
            "SECURITY: this key has cosigned a checkpoint that this state does not have");
        if let Err(error) = self.state.keep_forgotten(note) {
            tracing::error!(%error, "its evidence could not be stored");
        }
        self.in_doubt.cancel();
        Err(NotCosigned::InDoubt)
    }

    fn log_of(&self, request: &AddCheckpoint) -> Option<Log> {
        let origin: Origin = request.checkpoint.text().lines().next()?.parse().ok()?;
        self.logs().get(&origin).cloned()
    }

    /// Returns the saved cosignature if the same checkpoint was cosigned in this second: repeated requests are
    /// harmless.
    fn same_second(&self, latest: &Latest, request: &AddCheckpoint, now: u64) -> Option<SignatureLine> {
        let same = latest.time == now && latest.note.text() == request.checkpoint.text();
        let ours = |line: &&SignatureLine| line.is_by(self.signer.key());
        latest.note.signatures().iter().find(ours).filter(|_| same).cloned()
    }

    /// Cosigns, and assembles the note to save: the log's signature and the cosignature, without third parties' lines.
    fn cosign(
        &self,
        log: &Log,
        checkpoint: Checkpoint,
        note: &Note,
        now: u64,
    ) -> Result<(Latest, SignatureLine), NotCosigned> {
        let line = cosignature::cosign(&self.signer, note.text(), now)?;
        let keys = log.keys_for(checkpoint.size());
        let theirs = note.signatures().iter().find(|line| keys.iter().any(|key| line.is_by(key))).cloned();
        let lines = theirs.into_iter().chain([line.clone()]).collect();
        let note = Note::from_parts(note.text(), lines)?;
        Ok((Latest { checkpoint, note, time: now }, line))
    }

    fn not_kept(&self, error: WriteError) -> NotCosigned {
        tracing::error!(%error, "a checkpoint could not be kept");
        match error {
            WriteError::Unchanged { .. } => NotCosigned::NotKept(error),
            WriteError::InDoubt { .. } => {
                self.in_doubt.cancel();
                NotCosigned::InDoubt
            }
        }
    }

    /// Saves two checkpoints of one size, both signed by the log, as self-contained proof of a fork.
    fn keep_fork(&self, refusal: &CosignRefusal, page: &LedgerPage, request: &AddCheckpoint) {
        let (CosignRefusal::Fork { .. }, Some(seen)) = (refusal, &page.latest) else { return };
        let Ok(given) = Checkpoint::parse_text(request.checkpoint.text()) else { return };
        match self.state.keep_fork(seen, &given, &request.checkpoint) {
            Ok(Some(folder)) => {
                tracing::error!(log = %given.origin(), size = given.size().get(), folder = %folder.display(),
                    "SECURITY: the log has signed two trees of one size");
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, log = %given.origin(), "a fork could not be kept as evidence")
            }
        }
    }
}

impl LedgerPage {
    /// The time to sign: never before the last one, because a cosignature states that at its time no larger tree was
    /// seen.
    fn not_before(&self, now: u64) -> Result<u64, NotCosigned> {
        let last = self.latest.as_ref().map_or(0, |latest| latest.time);
        if self.goes_back {
            tracing::warn!(now, last, "the signed time goes back: a clock correction of the operator");
            return Ok(now);
        }
        if now.saturating_add(CLOCK_SLACK) < last {
            tracing::error!(
                now,
                last,
                "the clock is behind the last cosignature; if it was ahead then, and is right now, \
                start with --clock-was-ahead"
            );
            return Err(NotCosigned::ClockBehind);
        }
        Ok(now.max(last))
    }

    /// Applies the rate limit to a growth. A request without growth is not counted.
    fn grow(&self, pace: &mut Pace, log: &Log, size: TreeSize, now: u64) -> Result<(), NotCosigned> {
        let same = self.latest.as_ref().is_some_and(|latest| latest.checkpoint.size() == size);
        match log.per_day {
            Some(per_day) if !same => {
                pace.grow(per_day, size, now).map_err(|wait| NotCosigned::TooOften { per_day, wait })
            }
            _ => Ok(()),
        }
    }
}

/// Locks a mutex even if it is poisoned: data is modified only after it was saved, so a panic leaves it consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The log's keys in force for the note's tree size. A malformed checkpoint is rejected later.
fn keys_for(log: &Log, note: &Note) -> Vec<VerifierKey> {
    let size = Checkpoint::parse_text(note.text()).map_or(TreeSize::EMPTY, |checkpoint| checkpoint.size());
    log.keys_for(size)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
