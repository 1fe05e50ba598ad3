//! Drains the inbox while this process leads: what other processes admitted, and what was answered
//! as accepted, gets its place or its refusal.
//!
//! An item stays pending until a commit settles it or a refusal is inserted, so a crash at any
//! point loses nothing: the next leader finds it again, and what is in the log already is only
//! settled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use merkle::EntryDigest;
use store::{InboxItem, StoreError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::budget::Budget;
use crate::handle::{Answer, Command, Reply, Request};
use crate::{Parts, Redecision, Submission, SubmitError};

/// How often finished attempts are forgotten.
const TRIM_EVERY: Duration = Duration::from_secs(10);
/// How many are forgotten at once.
const TRIM_AT_ONCE: usize = 4096;

/// The task's state.
pub(crate) struct Drain {
    parts: Arc<Parts>,
    budget: Budget,
    /// Weak: this task alone does not keep the sequencer alive.
    commands: mpsc::WeakUnboundedSender<Command>,
    replies: mpsc::UnboundedSender<(EntryDigest, Answer)>,
    answers: mpsc::UnboundedReceiver<(EntryDigest, Answer)>,
    /// Handed to the sequencer and not answered yet.
    held: HashMap<EntryDigest, Arc<Submission>>,
    trimmed: Instant,
}

impl Drain {
    pub(crate) fn new(
        parts: Arc<Parts>,
        budget: Budget,
        commands: mpsc::WeakUnboundedSender<Command>,
    ) -> Self {
        let (replies, answers) = mpsc::unbounded_channel();
        let held = HashMap::new();
        Self { parts, budget, commands, replies, answers, held, trimmed: Instant::now() }
    }

    /// Until it is aborted.
    pub(crate) async fn run(mut self) {
        loop {
            self.trim().await;
            match self.drain().await {
                Ok(()) if self.held.is_empty() => sleep(self.parts.limits.inbox_poll).await,
                Ok(()) => self.collect().await,
                Err(error) => {
                    tracing::warn!(%error, "the inbox cannot be read");
                    sleep(self.parts.limits.longest_pause).await;
                }
            }
        }
    }

    /// Now and then, however much waits: an inbox that is never empty must not grow.
    async fn trim(&mut self) {
        if self.trimmed.elapsed() < TRIM_EVERY {
            return;
        }
        match self.parts.store.trim_inbox(TRIM_AT_ONCE).await {
            Ok(forgotten) if forgotten >= TRIM_AT_ONCE as u64 => {} // there is more, for the next turn
            Ok(_) => self.trimmed = Instant::now(),
            Err(error) => {
                tracing::warn!(%error, "the inbox was not trimmed");
                self.trimmed = Instant::now();
            }
        }
    }

    /// Waits for one answer, takes all that came with it.
    async fn collect(&mut self) {
        let mut answers = Vec::new();
        self.answers.recv_many(&mut answers, self.parts.limits.inbox_batch).await;
        let mut paused = false;
        for (digest, answer) in answers {
            paused |= !self.answered(digest, answer).await;
        }
        if paused {
            sleep(self.parts.limits.inbox_poll).await;
        }
    }

    /// Hands over what is pending and not held yet.
    async fn drain(&mut self) -> Result<(), StoreError> {
        let limit = self.parts.limits.inbox_batch + self.held.len();
        for item in self.parts.store.pending(limit).await? {
            if !self.held.contains_key(&item.digest) && !self.take_up(item).await? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there was room for it.
    async fn take_up(&mut self, item: InboxItem) -> Result<bool, StoreError> {
        match read(&item.digest, &item.submission) {
            // Under whatever policy it was decided: it may be in the log already.
            Ok(submission) => Ok(self.submit(submission)),
            Err(why) => self.refuse(&item.digest, &why).await.map(|()| true),
        }
    }

    fn submit(&mut self, submission: Submission) -> bool {
        let Some((place, commands)) = self.budget.take(submission.weight()).zip(self.commands.upgrade())
        else {
            return false;
        };
        let (digest, submission) = (submission.entry.digest, Arc::new(submission));
        let reply = Reply::Inbox(digest, self.replies.clone());
        let request = Request { submission: Arc::clone(&submission), reply, place };
        let sent = commands.send(Command::Submit(request)).is_ok();
        if sent {
            self.held.insert(digest, submission);
        }
        sent
    }

    async fn redecide(&mut self, submission: Submission) -> Result<bool, StoreError> {
        let digest = submission.entry.digest;
        match self.parts.redecide.redecide(submission).await {
            Redecision::Admit(submission) => Ok(self.submit(*submission)),
            Redecision::Refuse(why) => self.refuse(&digest, &why).await.map(|()| true),
            Redecision::Later => Ok(true),
        }
    }

    /// Whether to go on at once: not if the item may only come back unchanged.
    async fn answered(&mut self, digest: EntryDigest, answer: Answer) -> bool {
        let (Some(submission), Answer::Done(outcome)) = (self.held.remove(&digest), answer) else {
            return false;
        };
        match outcome {
            Ok(_) => true, // settled by the commit
            Err(SubmitError::GuardTaken { key, index }) => {
                let why = self.parts.redecide.guard_taken(&submission, &key, index).await;
                self.refuse(&digest, &why).await.is_ok()
            }
            Err(error @ (SubmitError::Twin { .. } | SubmitError::DigestMismatch { .. })) => {
                self.refuse(&digest, &error.to_string()).await.is_ok()
            }
            Err(
                SubmitError::PolicyMoved { .. }
                | SubmitError::RelyOnAbsent { .. }
                | SubmitError::OutsideWindow { .. },
            ) => {
                let again = self.redecide(Arc::unwrap_or_clone(submission)).await;
                again.is_ok() && self.held.contains_key(&digest)
            }
            Err(_) => false, // it stays pending
        }
    }

    async fn refuse(&self, digest: &EntryDigest, why: &str) -> Result<(), StoreError> {
        tracing::info!(%digest, why, "a statement from the inbox is refused");
        self.parts.store.refuse(digest, why).await
    }
}

fn read(digest: &EntryDigest, bytes: &Bytes) -> Result<Submission, String> {
    match Submission::decode(bytes) {
        Ok(submission) if submission.entry.digest == *digest => Ok(submission),
        Ok(submission) => Err(format!("the inbox row holds another statement: {}", submission.entry.digest)),
        Err(error) => Err(format!("the inbox row cannot be read: {error}")),
    }
}
