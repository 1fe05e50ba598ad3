//! Leading: performs the [`Machine`]'s effects, one at a time, and passes it the results as events.
//!
//! While an effect is in progress nothing is taken from the channel: submissions that arrive meanwhile are the
//! next batch. No lock is held in this module.

use std::future::Future;
use std::pin::Pin as Pinned;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Batch, CommitError, CommittedHead, Lease, Pin, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use crate::budget::SubmissionSlot;
use crate::clock::ClockCheck;
use crate::command::{CommandAnswer, SequencerCommand, SubmissionReply, SubmitRequest};
use crate::context::SequencerContext;
use crate::crash::Point;
use crate::draft::{KnownEntries, LookUp};
use crate::end_of_leading::EndOfLeading;
use crate::machine::{Leave, Machine, MachineInput, MachineOutput, Recovered};
use crate::spans;
use crate::{Halt, Limits, PublishedHead, Role, SequencerParts, SignFailed, Step};

/// Commands taken from the channel at once.
const AT_ONCE: usize = 4096;
/// Submissions within this many [`Limits::linger`](crate::Limits::linger)s after a large batch count as part of
/// the same rush.
const RUSH: u32 = 4;

/// Reason why leading ended.
pub(crate) enum LeadingEnd {
    /// The machine left.
    Left(Leave),
    /// The operator stopped the process; all work is finished.
    Stopped,
    /// Leading did not begin: this process may not lead.
    Ineligible(Halt),
}

/// Reply channel of a submission, with its room in the queue.
pub(crate) struct Waiter {
    reply: SubmissionReply,
    _place: SubmissionSlot,
}

type Task = Pinned<Box<dyn Future<Output = MachineInput<Waiter>> + Send>>;

struct Leading<'a> {
    context: &'a SequencerContext,
    machine: Machine<Waiter>,
    /// Effect in progress, if any.
    task: Option<Task>,
    left: Option<Leave>,
    newest: Newest,
}

/// Measurements of the newest batch, for metrics and for lingering.
struct Newest {
    sealed: Instant,
    sent: Instant,
    entries: usize,
    bytes: usize,
    published: Option<Instant>,
}

/// Leads until the machine leaves or the process stops. A correction goes into the first batch. `ready` is called
/// once the recovered head is published.
pub(crate) async fn lead(
    context: &SequencerContext,
    commands: &mut mpsc::UnboundedReceiver<SequencerCommand>,
    lease: &mut dyn Lease,
    (recovered, clock): (Recovered, ClockCheck),
    correction: Option<SubmitRequest>,
    ready: impl FnOnce(),
) -> LeadingEnd {
    let mut leading = Leading::start(context, recovered, clock);
    if let Some(correction) = correction {
        leading.take(SequencerCommand::Submit(correction));
    }
    let mut ready = Some(ready);
    let mut end = EndOfLeading::watch(context, lease);
    let mut stop = context.stop.subscribe();
    loop {
        if let Some(leave) = leading.left.take() {
            return LeadingEnd::Left(leave);
        }
        if leading.finish_effect(&mut end).await {
            continue;
        }
        if let Some(ready) = ready.take() {
            ready();
        }
        if waits(context.parts.signer.key_waits()).await {
            leading.change_keys().await;
            continue;
        }
        let stopping = *stop.borrow_and_update();
        leading.take_waiting(commands);
        if leading.machine.has_work() {
            leading.seal_after_lingering(commands, stopping, &mut end).await;
        } else if stopping || !leading.wait(commands, &mut stop, &mut end).await {
            leading.handle(MachineInput::HandOver);
            return LeadingEnd::Stopped;
        }
    }
}

/// Returns whether the future resolves without waiting.
async fn waits(something: impl Future<Output = ()>) -> bool {
    tokio::select! {
        biased;
        () = something => true,
        () = std::future::ready(()) => false,
    }
}

impl<'a> Leading<'a> {
    /// Begins with the recovered head, and with the first effects of the machine.
    fn start(context: &'a SequencerContext, recovered: Recovered, clock: ClockCheck) -> Self {
        context.show(|status| {
            status.role = Role::Leading { epoch: recovered.head.epoch };
            status.ineligible = None;
            status.policy = recovered.head.policy;
            status.size = recovered.head.size();
        });
        let parts = &context.parts;
        let (machine, effects) = Machine::start(parts.origin.clone(), parts.limits.clone(), clock, recovered);
        let mut leading = Self { context, machine, task: None, left: None, newest: Newest::none() };
        leading.perform(effects);
        leading
    }

    /// Waits for the result of the effect in progress, and passes it on. Returns false if there is none in progress.
    async fn finish_effect(&mut self, end: &mut EndOfLeading<'_>) -> bool {
        let Some(task) = &mut self.task else { return false };
        tokio::select! {
            biased;
            // First branch, so that nothing more is signed after a contradiction.
            leave = end.reason() => self.handle(MachineInput::Leave(leave)),
            event = task => self.finish(event),
        }
        true
    }

    /// Seals a batch, after the time to wait for more submissions.
    async fn seal_after_lingering(
        &mut self,
        commands: &mut mpsc::UnboundedReceiver<SequencerCommand>,
        stopping: bool,
        end: &mut EndOfLeading<'_>,
    ) {
        tokio::select! {
            biased;
            leave = end.reason() => return self.handle(MachineInput::Leave(leave)),
            () = pause(self.linger(stopping)) => {}
        }
        self.take_waiting(commands);
        self.seal();
    }

    /// Waits, without work, for a command, a stop, announced keys or a reason to end, and stores signatures that
    /// are not yet kept. Returns false if no more commands can arrive.
    async fn wait(
        &mut self,
        commands: &mut mpsc::UnboundedReceiver<SequencerCommand>,
        stop: &mut watch::Receiver<bool>,
        end: &mut EndOfLeading<'_>,
    ) -> bool {
        let parts = &self.context.parts;
        tokio::select! {
            biased;
            leave = end.reason() => self.handle(MachineInput::Leave(leave)),
            command = commands.recv() => match command {
                Some(command) => self.take(command),
                None => return false,
            },
            _ = stop.changed() => {}
            () = parts.signer.key_waits() => {}
            () = sleep(parts.limits.keep_after), if self.machine.has_unkept() => {
                self.handle(MachineInput::HandOver);
            }
        }
        true
    }

    /// Takes the commands that are in the channel, without waiting.
    fn take_waiting(&mut self, commands: &mut mpsc::UnboundedReceiver<SequencerCommand>) {
        for _ in 0..4 * AT_ONCE {
            match commands.try_recv() {
                Ok(command) => self.take(command),
                Err(_) => break,
            }
        }
    }

    fn take(&mut self, command: SequencerCommand) {
        match command {
            SequencerCommand::Submit(SubmitRequest { submission, reply, place }) => {
                let in_inbox = matches!(reply, SubmissionReply::Inbox(..));
                let waiter = Waiter { reply, _place: place };
                self.handle(MachineInput::Submitted { submission, waiter, in_inbox });
            }
            // The item is durable in the inbox, which this process drains now.
            SequencerCommand::Follow(follow) => drop(follow.reply.send(CommandAnswer::HandBack)),
        }
    }

    /// Time to wait for more submissions: zero unless the log is busy and the batch is not full.
    fn linger(&self, stopping: bool) -> Duration {
        let limits = &self.context.parts.limits;
        let (waiting, _) = self.context.budget.used();
        match !stopping && waiting < limits.batch_entries && self.newest.in_a_rush(limits) {
            true => limits.linger,
            false => Duration::ZERO,
        }
    }

    /// Takes up announced keys between two batches. All signatures of the old key are stored first, in order, so
    /// that no later start needs that key for the newest head or an earlier one. A change of unknown outcome ends
    /// leading, as only a take-over settles it.
    async fn change_keys(&mut self) {
        self.handle(MachineInput::HandOver);
        let parts = self.parts();
        let epoch = self.machine.head().epoch;
        let change = async {
            if !self.context.signatures.flush().await {
                return Err(SignFailed("not every signature could be kept".to_owned()));
            }
            Point::BeforeKeyChange.visit();
            let changed = parts.signer.take_up(epoch).await;
            Point::AfterKeyChange.visit();
            changed
        };
        let changed = timeout(parts.limits.patience, change).await;
        if let Err(SignFailed(why)) = changed.unwrap_or_else(|_| Err(SignFailed("no answer in time".into())))
        {
            tracing::warn!(why, "a new key was not taken up");
            self.handle(MachineInput::Leave(Leave::StepDown("it is not known which key signs")));
        }
    }

    fn seal(&mut self) {
        let (entries, bytes) = self.context.budget.used();
        self.context.parts.observer.queue(entries, bytes);
        if self.is_overdue() || !self.context.signatures.is_empty() {
            self.handle(MachineInput::HandOver); // behind the earlier ones that wait there
        }
        self.newest.sealed = Instant::now();
        self.handle(MachineInput::Seal(self.context.parts.clock.now()));
    }

    /// Returns `true` if the newest signatures waited long enough for a batch that takes them along. Rounds that commit
    /// nothing, since all of their statements are known or refused, do not postpone them further.
    fn is_overdue(&self) -> bool {
        let keep_after = self.context.parts.limits.keep_after;
        self.newest.published.is_some_and(|published| published.elapsed() >= keep_after)
    }

    /// Passes on the result of the effect in progress.
    fn finish(&mut self, event: MachineInput<Waiter>) {
        self.end_step();
        self.observe(&event);
        self.handle(event);
    }

    fn observe(&self, event: &MachineInput<Waiter>) {
        let observer = &self.context.parts.observer;
        match event {
            MachineInput::Committed(Ok(())) if self.newest.entries > 0 => {
                let Newest { entries, bytes, sent, .. } = self.newest;
                observer.batch_committed(entries, bytes, sent.elapsed());
            }
            MachineInput::Committed(Err(CommitError::Unknown(why))) => {
                tracing::warn!(why, "the outcome of a commit is unknown; settling it");
                observer.commit_unknown();
            }
            MachineInput::Committed(Err(error)) if error.is_refusal() => {
                tracing::debug!(%error, "a batch is looked up");
            }
            MachineInput::Committed(Err(error)) => tracing::warn!(%error, "a batch was not committed"),
            MachineInput::Signed(Err(error)) => tracing::error!(%error, "a head was not signed"),
            MachineInput::LookedUp(Err(error)) => tracing::warn!(%error, "a look-up failed"),
            _ => {}
        }
    }

    fn handle(&mut self, event: MachineInput<Waiter>) {
        let effects = self.machine.handle(event);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<MachineOutput<Waiter>>) {
        for effect in effects {
            match effect {
                MachineOutput::Answer(waiter, answer) => waiter.reply.send(answer),
                MachineOutput::Publish { head, policy } => self.publish(head, policy),
                MachineOutput::Keep(signatures) => self.context.signatures.push(signatures),
                MachineOutput::Leave(leave) => {
                    self.end_step();
                    self.left = Some(leave);
                }
                MachineOutput::LookUp(ask) => self.begin(Step::LookUp, look_up(self.parts(), ask)),
                MachineOutput::Commit { batch, after } => {
                    self.newest.sent(&batch);
                    self.begin(Step::Commit, commit(self.parts(), batch, after));
                }
                MachineOutput::TakeOver => self.begin(Step::Settle, take_over(self.parts())),
                MachineOutput::Claim(pin) => self.begin(Step::Pin, claim(self.parts(), pin)),
                MachineOutput::Pin(pin) => self.begin(Step::Pin, raise(self.parts(), pin)),
                MachineOutput::Sign { head, after } => {
                    self.begin(Step::Sign, sign(self.parts(), head, after))
                }
            }
        }
    }

    fn begin(&mut self, step: Step, task: impl Future<Output = MachineInput<Waiter>> + Send + 'static) {
        self.context.activity.begin(step);
        self.task = Some(Box::pin(task));
    }

    fn end_step(&mut self) {
        self.context.activity.end();
        self.task = None;
    }

    fn publish(&mut self, head: Arc<PublishedHead>, policy: merkle::LeafIndex) {
        let size = head.head.size;
        let epoch = self.machine.head().epoch;
        self.context.show(|status| {
            status.role = Role::Leading { epoch };
            status.published = Some(head);
            status.policy = policy;
            status.size = size;
        });
        self.newest.published = Some(Instant::now());
        self.context.parts.observer.head_published(size, self.newest.sealed.elapsed());
        Point::BeforeAnswer.visit();
    }

    fn parts(&self) -> Arc<SequencerParts> {
        Arc::clone(&self.context.parts)
    }
}

impl Newest {
    fn none() -> Self {
        Self { sealed: Instant::now(), sent: Instant::now(), entries: 0, bytes: 0, published: None }
    }

    fn sent(&mut self, batch: &Batch) {
        self.sent = Instant::now();
        self.entries = batch.entries.len();
        self.bytes = batch.entries.iter().map(|entry| entry.statement.len()).sum();
    }

    fn in_a_rush(&self, limits: &Limits) -> bool {
        let recent = self.published.is_some_and(|then| then.elapsed() < limits.linger * RUSH);
        recent && self.entries >= limits.busy_entries
    }
}

async fn look_up(parts: Arc<SequencerParts>, ask: LookUp) -> MachineInput<Waiter> {
    let found = parts.store.find(&ask.digests);
    let guards = async {
        match ask.guards.is_empty() {
            true => Ok(Vec::new()),
            false => parts.store.guards(&ask.guards).await,
        }
    };
    let both = async { tokio::try_join!(found, guards) };
    let answer = timeout(parts.limits.patience, both).await;
    let answer = answer.unwrap_or_else(|_| Err(StoreError::Unavailable("a look-up took too long".into())));
    MachineInput::LookedUp(answer.map(|(found, guards)| KnownEntries { found, guards }))
}

async fn commit(parts: Arc<SequencerParts>, batch: Arc<Batch>, after: Duration) -> MachineInput<Waiter> {
    pause(after).await;
    if !batch.signatures.is_empty() {
        Point::BeforeKeep.visit();
    }
    Point::BeforeCommit.visit();
    let span = spans::commit(batch.entries.len());
    let outcome = timeout(parts.limits.patience, parts.store.commit(&batch)).instrument(span.clone()).await;
    let outcome = outcome.unwrap_or_else(|_| Err(CommitError::Unknown("no answer in time".into())));
    if outcome.as_ref().is_err_and(|error| !error.is_refusal()) {
        spans::fail(&span, "commit");
    }
    drop(span);
    Point::AfterCommit.visit();
    MachineInput::Committed(outcome)
}

/// Repeats the take-over until the database answers: nothing can be signed before that.
async fn take_over(parts: Arc<SequencerParts>) -> MachineInput<Waiter> {
    let mut attempt = 1;
    loop {
        match timeout(parts.limits.patience, parts.store.take_over(&parts.holder)).await {
            Ok(Ok(head)) => return MachineInput::TakenOver(head),
            // A freeze settles the commit as well: the head is the last one.
            Ok(Err(StoreError::Frozen)) => match parts.store.head().await {
                Ok(head) => return MachineInput::TakenOver(head),
                Err(error) => tracing::warn!(%error, "the last head cannot be read yet"),
            },
            Ok(Err(error)) => tracing::warn!(%error, "the unknown commit is not settled yet"),
            Err(_) => tracing::warn!("the unknown commit is not settled yet: no answer in time"),
        }
        sleep(parts.limits.pause(attempt)).await;
        attempt += 1;
    }
}

async fn claim(parts: Arc<SequencerParts>, pin: Pin) -> MachineInput<Waiter> {
    MachineInput::Pinned(parts.pin.claim(&pin).await)
}

async fn raise(parts: Arc<SequencerParts>, pin: Pin) -> MachineInput<Waiter> {
    Point::BeforePin.visit();
    MachineInput::Pinned(parts.pin.raise(&pin).await)
}

async fn sign(parts: Arc<SequencerParts>, head: CommittedHead, after: Duration) -> MachineInput<Waiter> {
    pause(after).await;
    Point::BeforeSign.visit();
    let begun = Instant::now();
    let span = spans::signature(head.size.get());
    let signed = span.in_scope(|| parts.signer.sign(&head));
    if signed.is_err() {
        spans::fail(&span, "signature");
    }
    drop(span);
    Point::AfterSign.visit();
    if let Ok(signatures) = &signed {
        parts.observer.signatures_made(signatures.len(), begun.elapsed());
    }
    MachineInput::Signed(signed)
}

async fn pause(after: Duration) {
    if !after.is_zero() {
        sleep(after).await;
    }
}
