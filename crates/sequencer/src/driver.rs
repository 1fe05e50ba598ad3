//! The sequencer's task: follows until it has the lease, leads until it loses it, and so on.
//!
//! The lease decides which process tries to lead, the epoch in the database fences all others, and the pin shows
//! whether the database is the newest. Losing any of the three ends leading before the next signature.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use store::{Inbox, Lease, StoreError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep, timeout};

use crate::activity::{Activity, Heartbeat};
use crate::budget::Budget;
use crate::clock::{ClockReference, SubmissionClock};
use crate::command::{CommandAnswer, SequencerCommand, SubmitRequest};
use crate::context::{SequencerContext, settle, stopped};
use crate::follow::{Followed, Follower, refresh};
use crate::handle::Handle;
use crate::inbox::{Delayed, Drain};
use crate::lead::{LeadingEnd, lead};
use crate::leftover::sign_what_was_left;
use crate::machine::Leave;
use crate::recover::{Obstacle, recover};
use crate::supervision::Supervisor;
use crate::{Halt, Remedy, Role, SequencerParts, Status, SubmitError, signature_writer};

/// Leading for less than this time counts as a failed attempt.
const SHORT_REIGN: Duration = Duration::from_secs(10);

/// Reason why the sequencer could not start at all.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The task ended before it had a role.
    #[error("the sequencer failed at start")]
    Failed,
}

/// Opens the log and starts to follow or to lead. Returns once the first role is settled and, when leading, the
/// newest head is published.
///
/// A database that must not be sequenced is not an error here: the role is then [`Role::Halted`], and reads can be
/// served.
pub(crate) async fn start(parts: SequencerParts) -> Result<Handle, StartError> {
    parts.store.check_durability().await?;
    let head = parts.store.open(&parts.origin).await?;
    let parts = Arc::new(parts);
    let budget = Budget::new(parts.limits.queue_entries, parts.limits.queue_bytes);
    let status = Status {
        role: Role::Following,
        ineligible: None,
        published: None,
        policy: head.policy,
        size: head.size(),
    };
    let (status, shown) = watch::channel(status);
    let (status, stop) = (Arc::new(status), Arc::new(watch::channel(false).0));
    let (commands, received) = mpsc::unbounded_channel();
    let (signatures, queued) = signature_writer::queue();
    let kept = signature_writer::keep(
        parts.store.clone(),
        Arc::clone(&parts.observer),
        parts.limits.clone(),
        queued,
    );
    let inbox: Arc<dyn Inbox> = parts.store.clone();
    let limits = parts.limits.clone();
    let (activity, supervisor) = (Activity::default(), Supervisor::default());
    let (clock, delayed) = (Arc::new(SubmissionClock::new(Arc::clone(&parts.clock))), Delayed::default());
    let drained = Heartbeat::default();
    let context = SequencerContext {
        parts,
        budget: budget.clone(),
        clock: Arc::clone(&clock),
        delayed: delayed.clone(),
        drained: drained.clone(),
        stop: Arc::clone(&stop),
        activity: activity.clone(),
        supervisor: supervisor.clone(),
        status: Arc::clone(&status),
        signatures,
    };
    let (ready, is_ready) = oneshot::channel();
    let driver = Driver {
        context,
        commands: received,
        sender: commands.downgrade(),
        signature_writer: tokio::spawn(supervisor.watch("the task that keeps signatures", kept)),
        ready: Some(ready),
        clock: ClockReference::default(),
        correction: None,
    };
    let task = tokio::spawn(driver.run());
    let handle = Handle {
        commands,
        budget,
        status: shown,
        stop,
        inbox,
        limits,
        activity,
        clock,
        delayed,
        drained,
        task: task.abort_handle(),
    };
    tokio::spawn(supervise(task, status));
    is_ready.await.map_err(|_| StartError::Failed)?;
    Ok(handle)
}

/// Turns a panic of the sequencer into [`Halt::Panicked`]: a process that cannot know its state must end.
async fn supervise(task: JoinHandle<()>, status: Arc<watch::Sender<Status>>) {
    if let Err(error) = task.await {
        tracing::error!(%error, "the sequencer ended");
        status.send_modify(|status| status.role = Role::Halted(Halt::Panicked));
    }
}

struct Driver {
    context: SequencerContext,
    commands: mpsc::UnboundedReceiver<SequencerCommand>,
    sender: mpsc::WeakUnboundedSender<SequencerCommand>,
    signature_writer: JoinHandle<()>,
    ready: Option<oneshot::Sender<()>>,
    clock: ClockReference,
    /// Clock correction that waits until this process leads.
    correction: Option<SubmitRequest>,
}

impl Driver {
    async fn run(mut self) {
        let mut failures = 0;
        loop {
            let lease = match self.follow(&mut failures).await {
                Followed::Stopped => break,
                Followed::Lease(lease) => lease,
            };
            let since = Instant::now();
            match self.lead(lease).await {
                LeadingEnd::Stopped => break,
                LeadingEnd::Left(Leave::StepDown(why)) => {
                    tracing::warn!(why, "this process follows again");
                    failures = if since.elapsed() < SHORT_REIGN { failures + 1 } else { 1 };
                    settle(self.ready.take());
                }
                // The lease is released, so that another process can lead if it may.
                LeadingEnd::Ineligible(why) => {
                    self.ineligible(why).await;
                    failures += 1;
                }
                LeadingEnd::Left(Leave::Halt(halt)) => {
                    failures = if since.elapsed() < SHORT_REIGN { failures + 1 } else { 1 };
                    let tries_again = self.halted(halt, failures).await;
                    if !tries_again {
                        break;
                    }
                    // A correction that arrived during the halt is tried at once.
                    if self.correction.is_some() {
                        failures = 0;
                    }
                }
            }
        }
        self.end().await;
    }

    /// Follows until this process has the lease. After failures the lease is not asked for at once: two processes
    /// that cannot lead must not fence each other continuously. The failures before a clock correction arrived do not
    /// count.
    async fn follow(&mut self, failures: &mut u32) -> Followed {
        let limits = &self.context.parts.limits;
        let waited = self.correction.is_some();
        let pause = match (*failures, self.context.status().borrow().ineligible.is_some()) {
            (0, _) => Duration::ZERO,
            (_, false) => limits.pause(*failures),
            (_, true) => limits.wait(*failures),
        };
        let mut follower = Follower::new(&self.context, pause);
        let followed = follower.run(&mut self.commands, &mut self.correction, &mut self.ready).await;
        if !waited && self.correction.is_some() {
            *failures = 0;
        }
        followed
    }

    /// Takes over and leads, while the lease is held.
    async fn lead(&mut self, mut lease: Box<dyn Lease>) -> LeadingEnd {
        let correction = self.correction.take().filter(|correction| !correction.is_abandoned());
        let corrects = correction.as_ref().and_then(|correction| correction.submission.corrects);
        let recovered = match recover(&self.context.parts, &self.clock, corrects).await {
            Ok(recovered) => recovered,
            Err(Obstacle::Halt(halt)) => {
                refuse_correction(correction, &halt);
                return LeadingEnd::Left(Leave::Halt(halt));
            }
            Err(Obstacle::Ineligible(why)) => {
                refuse_correction(correction, &why);
                return LeadingEnd::Ineligible(why);
            }
            Err(Obstacle::Later(error)) => {
                self.correction = correction;
                tracing::warn!(%error, "taking over failed");
                return LeadingEnd::Left(Leave::StepDown("the database is not available"));
            }
        };
        self.context.clock.trust_as(&recovered.1);
        let parts = Arc::clone(&self.context.parts);
        if recovered.0.signatures.is_none() {
            sign_what_was_left(&parts, recovered.0.head.size()).await;
        }
        let drain = Drain::new(
            parts,
            self.context.delayed.clone(),
            self.context.drained.clone(),
            self.sender.clone(),
        );
        let supervisor = &self.context.supervisor;
        let mut task = AbortOnDrop(None);
        let ready = &mut self.ready;
        let started = || {
            let drained = supervisor.watch("the task that drains the inbox", drain.run());
            task.0 = Some(tokio::spawn(drained).abort_handle());
            settle(ready.take());
        };
        lead(&self.context, &mut self.commands, &mut *lease, recovered, correction, started).await
    }

    /// Follows, with the reason in [`Status::ineligible`], until this process may lead or another process leads.
    async fn ineligible(&mut self, why: Halt) {
        let status = self.context.status();
        if status.borrow().ineligible.as_ref() != Some(&why) {
            tracing::error!(reason = %why, "this process may not lead; it follows, and tries again");
        }
        if let Err(error) = refresh(&self.context).await {
            tracing::warn!(%error, "the newest signed head cannot be read");
        }
        self.context.show(|status| {
            status.role = Role::Following;
            status.ineligible = Some(why);
        });
        settle(self.ready.take());
    }

    /// Signs and places nothing until the remedy of the halt: a pause with back-off, or the end of the process.
    /// Returns whether to try again.
    async fn halted(&mut self, halt: Halt, failures: u32) -> bool {
        match halt {
            Halt::Frozen => tracing::warn!("sequencing ended: the log is frozen"),
            _ => tracing::error!(reason = %halt, remedy = ?halt.remedy(), "sequencing stopped"),
        }
        self.context.show(|status| status.role = Role::Halted(halt.clone()));
        settle(self.ready.take());
        let mut stop = self.context.stop.subscribe();
        let mut over = pin!(end_of_halt(Arc::clone(&self.context.parts), halt.clone(), failures));
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return false,
                command = self.commands.recv() => match command {
                    Some(SequencerCommand::Submit(request))
                        if request.submission.corrects.is_some() && halt.remedy() == Remedy::Retry =>
                    {
                        self.correction = Some(request);
                        return true;
                    }
                    Some(command) => refuse(command, &halt),
                    None => return false,
                },
                () = &mut over => return true,
            }
        }
    }

    /// Waits until all signatures are stored, then shows [`Role::Stopped`].
    async fn end(self) {
        let Self { context, signature_writer, commands, .. } = self;
        drop(commands);
        let SequencerContext { signatures, status, parts, .. } = context;
        drop(signatures);
        if timeout(parts.limits.stop_patience, signature_writer).await.is_err() {
            tracing::warn!("not all signatures were kept; the newest head is signed again at the next start");
        }
        status.send_modify(|status| status.role = Role::Stopped);
        parts.observer.role_changed(&Role::Stopped);
    }
}

/// Resolves when a halted process may try again: never, if only an operator or a new process ends the halt.
async fn end_of_halt(parts: Arc<SequencerParts>, halt: Halt, failures: u32) {
    if halt.remedy() != Remedy::Retry {
        return std::future::pending().await;
    }
    if let Halt::Refused(_) = halt {
        until_durable(&parts, failures).await;
    }
    sleep(parts.limits.halt_pause(failures)).await;
}

/// Waits until the database is durable again: before that, not even the epoch is raised.
async fn until_durable(parts: &SequencerParts, failures: u32) {
    while let Err(error) = parts.store.check_durability().await {
        tracing::warn!(%error, "the database cannot be relied on yet");
        sleep(parts.limits.halt_pause(failures)).await;
    }
}

fn refuse_correction(correction: Option<SubmitRequest>, halt: &Halt) {
    if let Some(correction) = correction {
        refuse(SequencerCommand::Submit(correction), halt);
    }
}

fn refuse(command: SequencerCommand, halt: &Halt) {
    let answer = CommandAnswer::Done(Err(SubmitError::Halted(halt.clone())));
    match command {
        SequencerCommand::Submit(request) => request.reply.send(answer),
        SequencerCommand::Follow(follow) => drop(follow.reply.send(answer)),
    }
}

/// Aborts a task when its starter is dropped.
struct AbortOnDrop(Option<AbortHandle>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
