//! [`Handle`]: accepts submissions, in any role of this process.

use std::sync::Arc;
use std::time::Duration;

use merkle::EntryDigest;
use store::{Arrival, Enqueued, Inbox, InboxItem};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::activity::{Activity, Heartbeat};
use crate::budget::Budget;
use crate::clock::SubmissionClock;
use crate::command::{CommandAnswer, Follow, SequencerCommand, SubmissionReply, SubmitRequest};
use crate::crash::Point;
use crate::inbox::{Delay, Delayed};
use crate::{Limits, Placement, PublishedHead, Role, Status, Step, Submission, SubmitError, TimeWindow};

/// Submits to the log, and shows its [`Status`]. Clones share one sequencer, which ends when the last of them is
/// dropped; prefer [`stop`](Self::stop), which finishes the work in progress.
#[derive(Clone)]
pub struct Handle {
    pub(crate) commands: mpsc::UnboundedSender<SequencerCommand>,
    pub(crate) budget: Budget,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) stop: Arc<watch::Sender<bool>>,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) limits: Limits,
    pub(crate) activity: Activity,
    pub(crate) clock: Arc<SubmissionClock>,
    pub(crate) delayed: Delayed,
    pub(crate) drained: Heartbeat,
    pub(crate) task: AbortHandle,
}

impl Handle {
    /// Submits a statement without issuer, as [`submit_for`](Self::submit_for) does.
    pub async fn submit(&self, submission: Submission) -> Result<Placement, SubmitError> {
        self.submit_for("", submission).await
    }

    /// Submits this issuer's statement, and waits within the [`Limits`] until it is placed.
    ///
    /// `Ok` only for a statement that is committed; with a head, only if that is signed. Dropping the future does
    /// not withdraw the statement. A statement whose time window is closed now is [`SubmitError::OutsideWindow`], and
    /// one that the log is too large for is [`SubmitError::LogFull`], in the roles that register, even if it is in the
    /// log already.
    pub async fn submit_for(&self, issuer: &str, submission: Submission) -> Result<Placement, SubmitError> {
        if *self.stop.borrow() {
            return Err(SubmitError::Stopping);
        }
        if submission.corrects.is_some() {
            return self.correct_clock(submission).await;
        }
        let Status { role, ineligible, .. } = self.status.borrow().clone();
        match role {
            Role::Leading { .. } | Role::Following => self.check_bounds(&submission)?,
            Role::Halted(_) | Role::Stopped => {}
        }
        match role {
            Role::Leading { .. } => self.submit_here(issuer, Arc::new(submission)).await,
            Role::Following => match ineligible {
                // No process is known to lead, so none would take the statement from the inbox.
                Some(halt) => Err(SubmitError::Halted(halt)),
                None => self.submit_there(issuer, &submission).await,
            },
            Role::Halted(halt) => Err(SubmitError::Halted(halt)),
            Role::Stopped => Err(SubmitError::Stopping),
        }
    }

    /// Watches role, newest signed head and policy.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Newest signed head known here.
    pub fn published(&self) -> Option<Arc<PublishedHead>> {
        self.status.borrow().published.clone()
    }

    /// Step that sequencing waits for, and its duration; `None` while it waits for work.
    pub fn activity(&self) -> Option<(Step, Duration)> {
        self.activity.current()
    }

    /// Time since the inbox could last be read; `None` while this process does not drain it.
    pub fn drained(&self) -> Option<Duration> {
        self.drained.age()
    }

    /// Number of waiting submissions, and their size in bytes.
    pub fn queue(&self) -> (usize, usize) {
        self.budget.used()
    }

    /// Back-off state of an inbox item that this process, as the leader, could not place yet; `None` if the item
    /// is not delayed.
    pub fn delay(&self, digest: &EntryDigest) -> Option<Delay> {
        self.delayed.of(digest)
    }

    /// Stops accepting submissions, places, signs and answers all work in progress and in the queue, releases the
    /// lease, and returns when all that is done.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut status = self.status.clone();
        // An error means that the task has ended, so it has stopped as well.
        let _ = status.wait_for(|status| status.role == Role::Stopped).await;
    }

    /// Aborts the sequencer's task, as a crash would. For tests.
    pub fn kill(&self) {
        self.task.abort();
    }

    async fn submit_here(&self, issuer: &str, submission: Arc<Submission>) -> Result<Placement, SubmitError> {
        let full = SubmitError::QueueFull { retry_after: self.limits.retry_after };
        let place = self.budget.take(submission.weight()).ok_or(full)?;
        let (reply, answer) = oneshot::channel();
        let request = SubmitRequest {
            submission: Arc::clone(&submission),
            reply: SubmissionReply::Caller(reply),
            place,
        };
        self.commands.send(SequencerCommand::Submit(request)).map_err(|_| SubmitError::Stopping)?;
        match timeout(self.limits.wait_leading, answer).await {
            Ok(Ok(CommandAnswer::Done(outcome))) => outcome,
            Ok(Ok(CommandAnswer::HandBack)) => self.submit_there(issuer, &submission).await,
            Ok(Err(_)) => Err(SubmitError::Stopping),
            Err(_late) => self.keep(issuer, &submission).await.and(Err(SubmitError::Accepted)),
        }
    }

    /// Submits a clock correction. While it is needed no process leads, so this process takes over to place it.
    async fn correct_clock(&self, submission: Submission) -> Result<Placement, SubmitError> {
        let full = SubmitError::QueueFull { retry_after: self.limits.retry_after };
        let place = self.budget.take(submission.weight()).ok_or(full)?;
        let (reply, answer) = oneshot::channel();
        let request =
            SubmitRequest { submission: Arc::new(submission), reply: SubmissionReply::Caller(reply), place };
        self.commands.send(SequencerCommand::Submit(request)).map_err(|_| SubmitError::Stopping)?;
        match timeout(self.limits.correction_patience, answer).await {
            Ok(Ok(CommandAnswer::Done(outcome))) => outcome,
            Ok(Ok(CommandAnswer::HandBack) | Err(_)) => Err(SubmitError::NoCorrection(
                "this process stopped leading, or got another correction; look whether it is registered, and try again",
            )),
            Err(_late) => Err(SubmitError::NoCorrection(
                "this process could not take over in time: another one may lead the log; look whether it is registered",
            )),
        }
    }

    async fn submit_there(&self, issuer: &str, submission: &Submission) -> Result<Placement, SubmitError> {
        let full = SubmitError::QueueFull { retry_after: self.limits.retry_after };
        let _place = self.budget.take(submission.weight()).ok_or(full)?;
        self.keep(issuer, submission).await?;
        let (reply, answer) = oneshot::channel();
        let follow = Follow { digest: submission.entry.digest, reply };
        if self.commands.send(SequencerCommand::Follow(follow)).is_err() {
            return Err(SubmitError::Accepted);
        }
        match timeout(self.limits.wait_following, answer).await {
            Ok(Ok(CommandAnswer::Done(outcome))) => outcome,
            _ => Err(SubmitError::Accepted),
        }
    }

    /// Refuses a statement that no batch at the present time and size of the log could hold. A statement that was
    /// decided under an older policy than the one known here passes: it will be decided again, and may then have
    /// other bounds.
    fn check_bounds(&self, submission: &Submission) -> Result<(), SubmitError> {
        let window = submission.valid;
        let status = self.status.borrow();
        if submission.decided_under < status.policy {
            return Ok(());
        }
        submission.check_size(status.size)?;
        if window == TimeWindow::ALWAYS {
            return Ok(());
        }
        let committed = status.published.as_ref().map_or(0, |published| published.head.at);
        match self.clock.seconds() {
            Some(now) if !window.contains(now.max(committed)) => {
                Err(SubmitError::OutsideWindow { at: now.max(committed), window })
            }
            _ => Ok(()),
        }
    }

    /// Stores the submission in the inbox. Only after this may a 202 be given.
    async fn keep(&self, issuer: &str, submission: &Submission) -> Result<(), SubmitError> {
        Point::BeforeEnqueue.visit();
        let item = InboxItem { digest: submission.entry.digest, submission: submission.encode() };
        let at = self.clock.wall_seconds();
        let arrival = Arrival { issuer, at, bounds: self.limits.inbox };
        let retry_after = self.limits.retry_after;
        match self.inbox.enqueue_within(&item, &arrival).await? {
            Enqueued::Kept => Ok(()),
            Enqueued::IssuerFull => Err(SubmitError::InboxFull { issuer_only: true, retry_after }),
            Enqueued::Full => Err(SubmitError::InboxFull { issuer_only: false, retry_after }),
        }
    }
}
