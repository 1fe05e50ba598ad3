//! Drains the inbox while this process leads: places or refuses the statements that were accepted there, by this
//! process or another.
//!
//! An item stays pending until a commit settles it or a refusal is stored, so a crash at any point loses nothing:
//! the next leader reads it again, and an item that is in the log already is only settled.
//!
//! Keys are read first and page by page (`cursor`); a submission is read when the budget has room for it, so that
//! memory does not grow with the inbox. An item that cannot be decided or placed now is retried with a back-off of
//! its own (`delayed`) and does not hold up the others.

mod cursor;
mod delayed;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use merkle::EntryDigest;
use store::{PendingKey, StoreError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use self::cursor::Cursor;
pub use self::delayed::Delay;
pub(crate) use self::delayed::Delayed;
use crate::activity::Heartbeat;
use crate::budget::{Budget, SubmissionSlot};
use crate::command::{CommandAnswer, SequencerCommand, SubmissionReply, SubmitRequest};
use crate::limits::CLOCK_TOLERANCE;
use crate::{Redecision, SequencerParts, Submission, SubmitError};

/// Longest time between two trims of finished attempts. Until they are trimmed they take room in the inbox.
const TRIM_EVERY: Duration = Duration::from_secs(10);
/// Upper bound of the number of finished attempts that cause a trim before that time.
const TRIM_AFTER: u64 = 1024;
/// Maximum number of attempts, and of failures, that one trim removes.
const TRIM_AT_ONCE: usize = 4096;
/// Bytes of submissions read at once; one larger submission is read alone.
const READ_BYTES: u64 = 2 << 20;
/// Delayed items retried in one turn, so that many of them do not hold up new ones.
const RETRIES_AT_ONCE: usize = 256;

/// State of the task.
pub(crate) struct Drain {
    parts: Arc<SequencerParts>,
    /// Bounds of the submissions in `held`.
    budget: Budget,
    /// Weak, so that this task alone does not keep the sequencer alive.
    commands: mpsc::WeakUnboundedSender<SequencerCommand>,
    replies: mpsc::UnboundedSender<(EntryDigest, CommandAnswer)>,
    answers: mpsc::UnboundedReceiver<(EntryDigest, CommandAnswer)>,
    held: HashMap<EntryDigest, HandedItem>,
    delayed: Delayed,
    drained: Heartbeat,
    cursor: Cursor,
    /// Number of attempts finished since `trimmed`.
    finished: u64,
    trimmed: Instant,
}

/// Item that was passed to the sequencer and has no answer yet.
struct HandedItem {
    key: PendingKey,
    submission: Arc<Submission>,
    /// Number of failed attempts before this one.
    attempts: u32,
    /// `true` once the item was decided again in this attempt.
    redecided: bool,
}

impl Drain {
    pub(crate) fn new(
        parts: Arc<SequencerParts>,
        delayed: Delayed,
        drained: Heartbeat,
        commands: mpsc::WeakUnboundedSender<SequencerCommand>,
    ) -> Self {
        drained.beat();
        let (replies, answers) = mpsc::unbounded_channel();
        let budget = Budget::new(parts.limits.inbox_held_entries, parts.limits.inbox_held_bytes);
        Self {
            parts,
            budget,
            commands,
            replies,
            answers,
            held: HashMap::new(),
            delayed,
            drained,
            cursor: Cursor::at_start(),
            finished: 0,
            trimmed: Instant::now(),
        }
    }

    /// Runs until the task is aborted.
    pub(crate) async fn run(mut self) {
        loop {
            self.trim().await;
            if let Err(error) = self.drain().await {
                tracing::warn!(%error, "the inbox cannot be read");
                sleep(self.parts.limits.longest_pause).await;
                continue;
            }
            self.drained.beat();
            match self.held.is_empty() {
                true => sleep(self.parts.limits.inbox_poll).await,
                false => self.collect().await,
            }
        }
    }

    /// Trims finished attempts and old failures from time to time, also under load: an inbox that is never empty must not grow.
    async fn trim(&mut self) {
        let many = (self.parts.limits.inbox.issuer_rows / 8).clamp(1, TRIM_AFTER);
        if self.trimmed.elapsed() < TRIM_EVERY && self.finished < many {
            return;
        }
        match self.parts.store.trim_inbox(TRIM_AT_ONCE).await {
            Ok(forgotten) if forgotten >= TRIM_AT_ONCE as u64 => return, // there is more, for the next turn
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the inbox was not trimmed"),
        }
        let keep = self.parts.limits.inbox_failures;
        if let Err(error) = self.parts.store.forget_failures(keep, TRIM_AT_ONCE).await {
            tracing::warn!(%error, "the oldest failures in the inbox were not forgotten");
        }
        (self.finished, self.trimmed) = (0, Instant::now());
    }

    /// Waits for an answer, and takes all that are ready.
    async fn collect(&mut self) {
        let mut answers = Vec::new();
        self.answers.recv_many(&mut answers, self.parts.limits.inbox_batch).await;
        for (digest, answer) in answers {
            self.answered(digest, answer).await;
        }
    }

    /// Passes pending items to the sequencer, as far as the budget allows: new ones before retries.
    async fn drain(&mut self) -> Result<(), StoreError> {
        let limit = self.parts.limits.inbox_batch;
        loop {
            let page = self.parts.store.pending_keys(self.cursor.after(), limit).await?;
            let last = page.len() < limit;
            if !self.take_up_new(page).await? {
                return Ok(());
            }
            if last {
                self.cursor.end();
                break;
            }
        }
        let due = self.delayed.due(RETRIES_AT_ONCE);
        self.take_up(&due).await.map(drop)
    }

    /// Passes on the items of a page that are neither held nor delayed; returns whether there was room for all.
    async fn take_up_new(&mut self, page: Vec<PendingKey>) -> Result<bool, StoreError> {
        let Some(end) = page.last().map(|key| key.number) else { return Ok(true) };
        let is_new =
            |key: &PendingKey| !self.held.contains_key(&key.digest) && !self.delayed.contains(&key.digest);
        let new: Vec<PendingKey> = page.into_iter().filter(is_new).collect();
        let all = self.take_up(&new).await?;
        if all {
            self.cursor.pass(end);
        }
        Ok(all)
    }

    /// Reads these items and passes them on; returns whether there was room for all.
    async fn take_up(&mut self, mut keys: &[PendingKey]) -> Result<bool, StoreError> {
        while !keys.is_empty() {
            let places = self.reserve(keys);
            if places.is_empty() {
                return Ok(false);
            }
            let (now, later) = keys.split_at(places.len());
            self.read_and_hand_over(now, places).await?;
            keys = later;
        }
        Ok(true)
    }

    /// Reserves room in the budget for the first of these items, up to [`READ_BYTES`].
    fn reserve(&self, keys: &[PendingKey]) -> Vec<SubmissionSlot> {
        let mut places = Vec::new();
        let mut bytes = 0;
        for key in keys {
            bytes += key.bytes;
            if bytes > READ_BYTES && !places.is_empty() {
                break;
            }
            let mut weight = usize::try_from(key.bytes).unwrap_or(usize::MAX);
            if self.held.is_empty() && places.is_empty() {
                weight = weight.min(self.parts.limits.inbox_held_bytes); // a larger one goes alone
            }
            let Some(place) = self.budget.take(weight) else { break };
            places.push(place);
        }
        places
    }

    async fn read_and_hand_over(
        &mut self,
        keys: &[PendingKey],
        places: Vec<SubmissionSlot>,
    ) -> Result<(), StoreError> {
        let numbers: Vec<u64> = keys.iter().map(|key| key.number).collect();
        let read = match self.parts.store.submissions(&numbers).await {
            Ok(read) => read,
            Err(error @ StoreError::Unavailable(_)) => return Err(error),
            Err(_) => self.read_one_by_one(keys).await?,
        };
        let mut read: HashMap<u64, Bytes> = read.into_iter().collect();
        for (key, place) in keys.iter().zip(places) {
            match read.remove(&key.number) {
                Some(bytes) => self.hand_over(key, &bytes, place).await,
                None => self.delayed.drop_if_due(&key.digest), // it has its outcome
            }
        }
        Ok(())
    }

    /// Reads the items one by one, so that a row that cannot be read does not hold up the others.
    async fn read_one_by_one(&self, keys: &[PendingKey]) -> Result<Vec<(u64, Bytes)>, StoreError> {
        let mut all = Vec::new();
        for key in keys {
            match self.parts.store.submissions(&[key.number]).await {
                Ok(read) => all.extend(read),
                Err(error @ StoreError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    self.delay_undecided(key, self.delayed.take(&key.digest), error.to_string());
                }
            }
        }
        Ok(all)
    }

    async fn hand_over(&mut self, key: &PendingKey, bytes: &Bytes, place: SubmissionSlot) {
        let attempts = self.delayed.take(&key.digest);
        match read(&key.digest, bytes) {
            // Also if it was decided under an older policy: the statement may be in the log already.
            Ok(submission) => {
                let submission = Arc::new(submission);
                self.submit(HandedItem { key: key.clone(), submission, attempts, redecided: false }, place);
            }
            Err(why) => self.refuse(key, attempts, &why).await,
        }
    }

    fn submit(&mut self, held: HandedItem, place: SubmissionSlot) {
        let Some(commands) = self.commands.upgrade() else { return };
        let digest = held.key.digest;
        let reply = SubmissionReply::Inbox(digest, self.replies.clone());
        let request = SubmitRequest { submission: Arc::clone(&held.submission), reply, place };
        if commands.send(SequencerCommand::Submit(request)).is_ok() {
            self.held.insert(digest, held);
        }
    }

    async fn answered(&mut self, digest: EntryDigest, answer: CommandAnswer) {
        let Some(held) = self.held.remove(&digest) else { return };
        let HandedItem { key, submission, attempts, .. } = &held;
        match answer {
            CommandAnswer::Done(Ok(_)) => self.finished += 1, // settled by the commit
            CommandAnswer::Done(Err(SubmitError::GuardTaken { key: guard, index })) => {
                let why = self.parts.redecide.guard_taken(submission, &guard, index).await;
                self.refuse(key, *attempts, &why).await;
            }
            CommandAnswer::Done(Err(SubmitError::LogFull { size, .. })) => {
                let why = self.parts.redecide.log_full(submission, size).await;
                self.refuse(key, *attempts, &why).await;
            }
            CommandAnswer::Done(Err(
                error @ (SubmitError::Twin { .. } | SubmitError::DigestMismatch { .. }),
            )) => {
                self.refuse(key, *attempts, &error.to_string()).await;
            }
            CommandAnswer::Done(Err(SubmitError::OutsideWindow { at, window })) => {
                match window.opens_in(at) {
                    Some(seconds) if seconds <= CLOCK_TOLERANCE => {
                        let why = "its time has not come yet".to_owned();
                        self.delayed.put(key.clone(), attempts + 1, Duration::from_secs(seconds), why);
                    }
                    _ => {
                        let why = self.parts.redecide.outside_window(submission, at).await;
                        self.refuse(key, *attempts, &why).await;
                    }
                }
            }
            CommandAnswer::Done(Err(
                error @ (SubmitError::PolicyMoved { .. } | SubmitError::RelyOnAbsent { .. }),
            )) => match held.redecided {
                false => self.redecide(held).await,
                true => self.delay_undecided(key, *attempts, error.to_string()),
            },
            CommandAnswer::Done(Err(error)) => self.delay_unplaced(key, *attempts, error.to_string()),
            CommandAnswer::HandBack => {
                self.delay_unplaced(key, *attempts, "this process stops leading".into())
            }
        }
    }

    async fn redecide(&mut self, held: HandedItem) {
        let HandedItem { key, submission, attempts, .. } = held;
        match self.parts.redecide.redecide(Arc::unwrap_or_clone(submission)).await {
            Redecision::Admit(submission) => match self.budget.take(submission.weight()) {
                Some(place) => {
                    let submission = Arc::from(submission);
                    self.submit(HandedItem { key, submission, attempts, redecided: true }, place);
                }
                None => self.delay_unplaced(&key, attempts, "no room in memory".into()),
            },
            Redecision::Refuse(why) => self.refuse(&key, attempts, &why).await,
            Redecision::Later => {
                self.delay_undecided(&key, attempts, "the policy comes to no answer now".into());
            }
        }
    }

    /// Stores the final refusal; delays the item if that fails.
    async fn refuse(&mut self, key: &PendingKey, attempts: u32, why: &str) {
        match self.parts.store.refuse(&key.digest, why).await {
            Ok(()) => {
                self.finished += 1;
                tracing::info!(digest = %key.digest, why, "a statement from the inbox is refused");
                self.parts.observer.inbox_refused();
            }
            Err(error) => self.delay_unplaced(key, attempts, error.to_string()),
        }
    }

    /// Retries an item with a back-off up to [`Limits::undecided_longest`](crate::Limits::undecided_longest), as
    /// each decision takes time.
    fn delay_undecided(&self, key: &PendingKey, attempts: u32, why: String) {
        let pause = self.parts.limits.undecided_pause(attempts + 1);
        tracing::debug!(digest = %key.digest, why, ?pause, "a statement from the inbox is undecided");
        self.delayed.put(key.clone(), attempts + 1, pause, why);
    }

    /// Retries an item soon: the log or its database did not take it.
    fn delay_unplaced(&self, key: &PendingKey, attempts: u32, why: String) {
        let pause = self.parts.limits.pause(attempts + 1);
        self.delayed.put(key.clone(), attempts + 1, pause, why);
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.drained.stop();
        self.delayed.clear();
    }
}

fn read(digest: &EntryDigest, bytes: &Bytes) -> Result<Submission, String> {
    match Submission::decode(bytes) {
        Ok(submission) if submission.entry.digest == *digest => Ok(submission),
        Ok(submission) => Err(format!("the inbox row holds another statement: {}", submission.entry.digest)),
        Err(error) => Err(format!("the inbox row cannot be read: {error}")),
    }
}
