//! The decision and its record as one step: for each log, one request at a time is judged, kept and only then answered.
//!
//! Everything here blocks, on a log's lock and on the disk. What was kept without being answered, because the process or
//! the connection ended in between, is found by the log as a 409.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use durable::WriteError;
use merkle::TreeSize;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NotANote, Note, NoteSigner, SignFailed, SignatureLine};
use tlog::witness::{self, AddCheckpoint, Refusal, Seen};
use tokio_util::sync::CancellationToken;

use crate::limits::CLOCK_SLACK;
use crate::list::{Log, LogList};
use crate::pace::Pace;
use crate::state::{Latest, StateDir};

/// Why there is no cosignature.
#[derive(Debug, thiserror::Error)]
pub enum NotCosigned {
    /// 404: the log is not one of ours.
    #[error("no such log is witnessed here")]
    UnknownLog,
    /// What [`Refusal::status`] says.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// 429: the log has grown a moment ago, or a larger tree of it has been sent and comes first.
    #[error("this log may grow {per_day} times a day")]
    TooOften {
        /// As listed.
        per_day: u32,
        /// Seconds until it may again.
        wait: u64,
    },
    /// 503: the clock is behind what was signed. Whoever compared the two cosignatures would find that one is a lie.
    #[error("the witness's clock is behind its last cosignature")]
    ClockBehind,
    /// 503: it could not be kept. Nothing has changed.
    #[error("the checkpoint could not be kept")]
    NotKept(#[source] WriteError),
    /// 500: what is on disk is not known. The process must end.
    #[error("the witness does not know what it has kept")]
    InDoubt,
    /// 500: the key did not sign.
    #[error(transparent)]
    Sign(#[from] SignFailed),
    /// 500: the log's signatures and ours make no note.
    #[error(transparent)]
    Note(#[from] NotANote),
}

/// What a log's cosigned checkpoints are, and who may add one.
pub struct Ledger {
    state: StateDir,
    signer: LocalKey,
    logs: RwLock<Arc<LogList>>,
    /// By the digests of origins, as they are asked for.
    pages: Mutex<HashMap<String, Arc<Mutex<Page>>>>,
    in_doubt: CancellationToken,
}

/// One log.
#[derive(Debug, Default)]
struct Page {
    latest: Option<Latest>,
    /// When it may grow again.
    pace: Pace,
    /// The last cosignature is of a future that the operator says never was: the next may be of before it.
    goes_back: bool,
}

impl Ledger {
    /// A ledger that goes on from what is kept.
    ///
    /// `back_to` is the time now (Unix seconds) if the clock was ahead and is not any more: of logs whose last
    /// cosignature is of a later time, one more may be of an earlier one. What was seen of them stays seen.
    pub fn new(
        state: StateDir,
        signer: LocalKey,
        kept: HashMap<Origin, Latest>,
        logs: LogList,
        back_to: Option<u64>,
    ) -> Self {
        let page = |latest: Latest| {
            let goes_back = back_to.is_some_and(|now| latest.time > now);
            Arc::new(Mutex::new(Page { latest: Some(latest), goes_back, ..Page::default() }))
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

    /// The key that cosigns.
    pub fn signer(&self) -> &LocalKey {
        &self.signer
    }

    /// The logs that are witnessed.
    pub fn logs(&self) -> Arc<LogList> {
        self.logs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Witnesses these logs from now on. What is kept of others stays kept.
    pub fn witness(&self, logs: LogList) {
        *self.logs.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(logs);
    }

    /// Whether the process must end: see [`NotCosigned::InDoubt`].
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt.is_cancelled()
    }

    /// Resolves once the process must end.
    pub async fn doubt(&self) {
        self.in_doubt.cancelled().await;
    }

    /// The newest checkpoint of the log whose origin has this digest, if any was cosigned.
    pub fn latest(&self, digest: &str) -> Option<Latest> {
        let page = lock(&self.pages).get(digest)?.clone();
        lock(&page).latest.clone()
    }

    /// Every log's newest checkpoint.
    pub fn all(&self) -> Vec<Latest> {
        let pages: Vec<_> = lock(&self.pages).values().cloned().collect();
        pages.iter().filter_map(|page| lock(page).latest.clone()).collect()
    }

    /// Cosigns a checkpoint at `now` (Unix seconds), once it is kept.
    pub fn add(&self, request: &AddCheckpoint, now: u64) -> Result<SignatureLine, NotCosigned> {
        let log = self.log_of(request).ok_or(NotCosigned::UnknownLog)?;
        // Before the lock: nobody waits for what anybody could send.
        let keys = keys_for(&log, &request.checkpoint);
        request.checkpoint.verify(&keys).map_err(Refusal::from)?;
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
        *page = Page { latest: Some(latest), pace, goes_back: false };
        Ok(line)
    }

    /// What carries our own cosignature is known here; if it is not, the state is an older copy, or another process has the
    /// key. Neither may go on.
    fn must_remember(&self, seen: Option<Seen>, note: &Note) -> Result<(), NotCosigned> {
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
            "SECURITY: this key has cosigned what is not known here");
        if let Err(error) = self.state.keep_forgotten(note) {
            tracing::error!(%error, "the proof of it could not be kept");
        }
        self.in_doubt.cancel();
        Err(NotCosigned::InDoubt)
    }

    fn log_of(&self, request: &AddCheckpoint) -> Option<Log> {
        let origin: Origin = request.checkpoint.text().lines().next()?.parse().ok()?;
        self.logs().get(&origin).cloned()
    }

    /// The checkpoint that was cosigned this very second is answered with what is kept: anybody may send it again.
    fn same_second(&self, latest: &Latest, request: &AddCheckpoint, now: u64) -> Option<SignatureLine> {
        let same = latest.time == now && latest.note.text() == request.checkpoint.text();
        let ours = |line: &&SignatureLine| line.is_by(self.signer.key());
        latest.note.signatures().iter().find(ours).filter(|_| same).cloned()
    }

    /// What will be kept: the log's own signatures and ours, and none of strangers.
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

    /// Two trees of one size, both signed by the log: whoever sees both files needs nobody's word.
    fn keep_fork(&self, refusal: &Refusal, page: &Page, request: &AddCheckpoint) {
        let (Refusal::Fork { .. }, Some(seen)) = (refusal, &page.latest) else { return };
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

impl Page {
    /// The time to sign. A cosignature says that at its time no larger tree was seen: so it is never of before the last one.
    fn not_before(&self, now: u64) -> Result<u64, NotCosigned> {
        let last = self.latest.as_ref().map_or(0, |latest| latest.time);
        if self.goes_back {
            tracing::warn!(
                now,
                last,
                "the time that is signed goes back: the operator says that the clock was ahead"
            );
            return Ok(now);
        }
        if now.saturating_add(CLOCK_SLACK) < last {
            tracing::error!(
                now,
                last,
                "the clock is behind what was signed; if it was ahead then, and is right now, \
                start with --clock-was-ahead"
            );
            return Err(NotCosigned::ClockBehind);
        }
        Ok(now.max(last))
    }

    /// Counts a growth, or says when it may be. What has not grown is not counted.
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

/// What is behind a lock is changed only after it is kept: a panic leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The log's keys whose signature over the tree of this note counts. What is no checkpoint is refused later.
fn keys_for(log: &Log, note: &Note) -> Vec<VerifierKey> {
    let size = Checkpoint::parse_text(note.text()).map_or(TreeSize::EMPTY, |checkpoint| checkpoint.size());
    log.keys_for(size)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
