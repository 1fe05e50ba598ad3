//! The door for submissions, in front of whichever role this process has.

use std::sync::Arc;
use std::time::Duration;

use merkle::EntryDigest;
use store::{Arrival, Enqueued, InboxItem, LogStore};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::activity::{Activity, Heartbeat};
use crate::budget::{Budget, Place};
use crate::clock::DoorClock;
use crate::crash::Point;
use crate::inbox::{Delay, Delayed};
use crate::{Limits, Placement, PublishedHead, Role, Status, Step, Submission, SubmitError, TimeWindow};

/// What reaches the task.
pub(crate) enum Command {
    /// Place this.
    Submit(Request),
    /// Say when this, which is durable in the inbox, is placed.
    Follow(Follow),
}

/// A submission with the way back.
pub(crate) struct Request {
    pub(crate) submission: Arc<Submission>,
    pub(crate) reply: Reply,
    pub(crate) place: Place,
}

/// Somebody who waits for an inbox item.
pub(crate) struct Follow {
    pub(crate) digest: EntryDigest,
    pub(crate) reply: oneshot::Sender<Answer>,
}

impl Request {
    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(&self.reply, Reply::Caller(reply) if reply.is_closed())
    }
}

/// The way back to who submitted.
pub(crate) enum Reply {
    /// A caller of [`Handle::submit`].
    Caller(oneshot::Sender<Answer>),
    /// The task that drains the inbox.
    Inbox(EntryDigest, mpsc::UnboundedSender<(EntryDigest, Answer)>),
}

impl Reply {
    /// Sends it; whoever has left needs no answer.
    pub(crate) fn send(self, answer: Answer) {
        match self {
            Self::Caller(reply) => drop(reply.send(answer)),
            Self::Inbox(digest, replies) => drop(replies.send((digest, answer))),
        }
    }
}

/// What comes back.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The outcome.
    Done(Result<Placement, SubmitError>),
    /// This process no longer sequences: take the other way.
    HandBack,
}

/// Submits to the log, and shows how it stands. Clones speak to the same sequencer, which ends when
/// the last of them is dropped; better [`stop`](Self::stop) it.
#[derive(Clone)]
pub struct Handle {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) budget: Budget,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) stop: Arc<watch::Sender<bool>>,
    pub(crate) store: Arc<dyn LogStore>,
    pub(crate) limits: Limits,
    pub(crate) activity: Activity,
    pub(crate) clock: Arc<DoorClock>,
    pub(crate) delayed: Delayed,
    pub(crate) drained: Heartbeat,
    pub(crate) task: AbortHandle,
}

impl Handle {
    /// Asks for a place for a statement of no issuer, as [`submit_for`](Self::submit_for) does.
    pub async fn submit(&self, submission: Submission) -> Result<Placement, SubmitError> {
        self.submit_for("", submission).await
    }

    /// Asks for a place for this issuer's statement, and waits for it within the limits.
    ///
    /// `Ok` only for a statement that is committed; with a head, only if that is signed. Dropping
    /// the future takes nothing back. A statement whose time window is closed now is
    /// [`SubmitError::OutsideWindow`], whatever this process's role, even if it is in the log already.
    pub async fn submit_for(&self, issuer: &str, submission: Submission) -> Result<Placement, SubmitError> {
        if *self.stop.borrow() {
            return Err(SubmitError::Stopping);
        }
        if submission.corrects.is_some() {
            return self.correct_clock(submission).await;
        }
        let Status { role, ineligible, .. } = self.status.borrow().clone();
        match role {
            Role::Leading { .. } | Role::Following => self.check_window(&submission)?,
            Role::Halted(_) | Role::Stopped => {}
        }
        match role {
            Role::Leading { .. } => self.submit_here(issuer, Arc::new(submission)).await,
            Role::Following => match ineligible {
                // Nobody leads, as far as is known: there is nobody to hand it to.
                Some(halt) => Err(SubmitError::Halted(halt)),
                None => self.submit_there(issuer, &submission).await,
            },
            Role::Halted(halt) => Err(SubmitError::Halted(halt)),
            Role::Stopped => Err(SubmitError::Stopping),
        }
    }

    /// Role, newest signed head and policy, now and whenever they change.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// The newest signed head known here.
    pub fn published(&self) -> Option<Arc<PublishedHead>> {
        self.status.borrow().published.clone()
    }

    /// The step that sequencing waits for, and for how long; `None` while it waits for work.
    pub fn activity(&self) -> Option<(Step, Duration)> {
        self.activity.current()
    }

    /// Time since the inbox could last be read; `None` while this process does not drain it.
    pub fn drained(&self) -> Option<Duration> {
        self.drained.age()
    }

    /// How much waits: submissions, and their bytes.
    pub fn queue(&self) -> (usize, usize) {
        self.budget.used()
    }

    /// State of an inbox item that this process, which leads, could not place yet; `None` if it is not delayed.
    pub fn delay(&self, digest: &EntryDigest) -> Option<Delay> {
        self.delayed.of(digest)
    }

    /// Takes no more submissions, finishes, signs and answers what is in flight and in the queue,
    /// gives the lease back, and returns when all that is done.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut status = self.status.clone();
        // An error means that the task is gone: stopped as well.
        let _ = status.wait_for(|status| status.role == Role::Stopped).await;
    }

    /// Ends the sequencer where it stands, as a crash would. For tests.
    pub fn kill(&self) {
        self.task.abort();
    }

    async fn submit_here(&self, issuer: &str, submission: Arc<Submission>) -> Result<Placement, SubmitError> {
        let full = SubmitError::QueueFull { retry_after: self.limits.retry_after };
        let place = self.budget.take(submission.weight()).ok_or(full)?;
        let (reply, answer) = oneshot::channel();
        let request = Request { submission: Arc::clone(&submission), reply: Reply::Caller(reply), place };
        self.commands.send(Command::Submit(request)).map_err(|_| SubmitError::Stopping)?;
        match timeout(self.limits.wait_leading, answer).await {
            Ok(Ok(Answer::Done(outcome))) => outcome,
            Ok(Ok(Answer::HandBack)) => self.submit_there(issuer, &submission).await,
            Ok(Err(_)) => Err(SubmitError::Stopping),
            Err(_late) => self.keep(issuer, &submission).await.and(Err(SubmitError::Accepted)),
        }
    }

    /// A correction is for this process to place, for nobody leads: it takes over with it.
    async fn correct_clock(&self, submission: Submission) -> Result<Placement, SubmitError> {
        let full = SubmitError::QueueFull { retry_after: self.limits.retry_after };
        let place = self.budget.take(submission.weight()).ok_or(full)?;
        let (reply, answer) = oneshot::channel();
        let request = Request { submission: Arc::new(submission), reply: Reply::Caller(reply), place };
        self.commands.send(Command::Submit(request)).map_err(|_| SubmitError::Stopping)?;
        match timeout(self.limits.correction_patience, answer).await {
            Ok(Ok(Answer::Done(outcome))) => outcome,
            Ok(Ok(Answer::HandBack) | Err(_)) => Err(SubmitError::NoCorrection(
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
        if self.commands.send(Command::Follow(follow)).is_err() {
            return Err(SubmitError::Accepted);
        }
        match timeout(self.limits.wait_following, answer).await {
            Ok(Ok(Answer::Done(outcome))) => outcome,
            _ => Err(SubmitError::Accepted),
        }
    }

    /// Refuses a statement that no batch of this time could take. What was decided under an older
    /// policy than the one known here is decided again first, which may give it another window.
    fn check_window(&self, submission: &Submission) -> Result<(), SubmitError> {
        let window = submission.valid;
        let status = self.status.borrow();
        if window == TimeWindow::ALWAYS || submission.decided_under < status.policy {
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

    /// Makes it durable. Only after this may a 202 be given.
    async fn keep(&self, issuer: &str, submission: &Submission) -> Result<(), SubmitError> {
        Point::BeforeEnqueue.visit();
        let item = InboxItem { digest: submission.entry.digest, submission: submission.encode() };
        let at = self.clock.wall_seconds();
        let arrival = Arrival { issuer, at, bounds: self.limits.inbox };
        let retry_after = self.limits.retry_after;
        match self.store.enqueue_within(&item, &arrival).await? {
            Enqueued::Kept => Ok(()),
            Enqueued::IssuerFull => Err(SubmitError::InboxFull { issuer_only: true, retry_after }),
            Enqueued::Full => Err(SubmitError::InboxFull { issuer_only: false, retry_after }),
        }
    }
}
