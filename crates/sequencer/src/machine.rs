//! [`Machine`]: the state machine in which the history could fork. It takes events and returns effects.
//!
//! It leads from one committed head to the next, one batch at a time:
//!
//! ```text
//!    ╭──────── all new? ───────╮
//! resting ─▶ looking up ─▶ committing ─▶ pinning ─▶ signing ─▶ resting
//!    ▲            ▲            │ ▲
//!    │            └─ taken? ───┤ │ as before
//!    └── certainly not ────────┤ │
//!                              ▼ │
//!                           settling ── happened ─▶ pinning
//!                                    ╰─ did not ──▶ claiming ─▶ committing
//! ```
//!
//! A batch is looked up only if the commit cannot find out by itself what is known of its members.
//!
//! Only `pinning` leads to `signing`, and only a committed head gets there. A start takes the same way: a recovered
//! head enters at `pinning`. The task that performs the effects (`lead`) reports each outcome as the next event; at
//! most one effect of the kinds that report is in progress at any time.
//!
//! Signatures are stored with the next batch, in its transaction. If none follows soon, or if leading ends, they are
//! handed over to a task of their own (`signature_writer`). A signature that a crash loses is made again at the next
//! start.
//!
//! Transitions between the phases: `batch` (up to a commit), `outcome` (after a commit), `publish` (up to the answers).
//!
//! Not here: tasks, timers, channels (`lead`), the lease and the inbox (`driver`, `inbox`).

mod batch;
mod outcome;
mod publish;

use std::sync::Arc;
use std::time::Duration;

use merkle::tile::OpenTiles;
use merkle::{EntryDigest, LeafIndex, TreeGrowth};
use store::{Batch, CommitError, CommittedHead, Head, HeadSignature, Pin, PinError, StoreError};

use crate::clock::{ClockCheck, Now};
use crate::command::CommandAnswer;
use crate::draft::{KnownEntries, LookUp};
use crate::pool::{PooledSubmission, SubmissionQueue};
use crate::{Halt, Limits, PublishedHead, SignFailed, Submission, SubmitError};

/// Input of the machine. `R` is the reply channel of a submission.
#[derive(Debug)]
pub(crate) enum MachineInput<R> {
    /// A submission arrived.
    Submitted { submission: Arc<Submission>, waiter: R, in_inbox: bool },
    /// A batch is due, of the submissions that wait.
    Seal(Now),
    /// Result of [`MachineOutput::LookUp`].
    LookedUp(Result<KnownEntries, StoreError>),
    /// Result of [`MachineOutput::Commit`].
    Committed(Result<(), CommitError>),
    /// Result of [`MachineOutput::TakeOver`], which is repeated until the database answers.
    TakenOver(Head),
    /// Result of [`MachineOutput::Pin`] and [`MachineOutput::Claim`].
    Pinned(Result<(), PinError>),
    /// Result of [`MachineOutput::Sign`].
    Signed(Result<Vec<HeadSignature>, SignFailed>),
    /// No batch will store the signatures soon: they must be kept otherwise.
    HandOver,
    /// Leading must end: the lease is lost, or the database turned out to be unsafe.
    Leave(Leave),
}

/// Output of the machine. The first six report their result as an [`MachineInput`].
#[derive(Debug)]
pub(crate) enum MachineOutput<R> {
    LookUp(LookUp),
    Commit {
        batch: Arc<Batch>,
        after: Duration,
    },
    TakeOver,
    /// Claims the pin for the epoch that the last take-over raised.
    Claim(Pin),
    Pin(Pin),
    Sign {
        head: CommittedHead,
        after: Duration,
    },
    Publish {
        head: Arc<PublishedHead>,
        policy: LeafIndex,
    },
    Keep(Vec<HeadSignature>),
    Answer(R, CommandAnswer),
    Leave(Leave),
}

/// Reason why the [`Machine`] ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Another process leads, or should.
    StepDown(&'static str),
    /// This process must not continue; [`Halt::remedy`] tells what ends that.
    Halt(Halt),
}

/// State that a process has after taking over, the result of [`recover`](crate::recover::recover).
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) head: Head,
    pub(crate) tiles: OpenTiles,
    /// Newest committed head; `None` while the log is empty.
    pub(crate) newest: Option<CommittedHead>,
    /// Signatures over the newest head, if the database has all that the signer makes.
    pub(crate) signatures: Option<Vec<HeadSignature>>,
    /// The log is frozen: its last head is signed and shown, and no batch follows.
    pub(crate) frozen: bool,
}

#[derive(Debug)]
enum Phase<R> {
    Resting,
    LookingUp(BatchDraft<R>),
    Committing(Flight<R>),
    Settling(Flight<R>),
    /// The commit did not happen, and is repeated in the new epoch once that has the pin.
    Claiming(Flight<R>),
    Pinning(Outgoing<R>),
    Signing(Outgoing<R>),
    Left,
}

/// Submissions taken from the pool, before they become a batch.
#[derive(Debug)]
struct BatchDraft<R> {
    at: u64,
    items: Vec<PooledSubmission<R>>,
    /// Second look-up, of all keys, after the database reported one of them as taken.
    thorough: bool,
}

/// Batch whose commit was requested.
#[derive(Debug)]
struct Flight<R> {
    draft: BatchDraft<R>,
    batch: Arc<Batch>,
    growth: TreeGrowth,
    tiles: OpenTiles,
    attempt: u32,
}

/// Committed head that is not published yet.
#[derive(Debug)]
struct Outgoing<R> {
    head: CommittedHead,
    items: Vec<PooledSubmission<R>>,
    growth: Option<TreeGrowth>,
    signatures: Option<Vec<HeadSignature>>,
    attempt: u32,
}

pub(crate) struct Machine<R> {
    origin: String,
    limits: Limits,
    clock: ClockCheck,
    /// The committed head. Its epoch is this process's.
    head: Head,
    tiles: OpenTiles,
    published: Option<Arc<PublishedHead>>,
    pool: SubmissionQueue<R>,
    /// Inbox items of this round that are in the log already: its commit settles them.
    found: Vec<(EntryDigest, LeafIndex)>,
    /// Signatures of published heads that are not stored yet, in order: the next commit stores them.
    unkept: Vec<HeadSignature>,
    /// Number of next batches that are looked up before their commit.
    look_ups_due: u32,
    phase: Phase<R>,
    /// Reason to leave as soon as the effect in progress has reported.
    leaving: Option<Leave>,
    effects: Vec<MachineOutput<R>>,
}

impl<R> Machine<R> {
    /// Starts from the recovered state. The head enters at the pin, where a committed batch's would.
    pub(crate) fn start(
        origin: String,
        limits: Limits,
        clock: ClockCheck,
        recovered: Recovered,
    ) -> (Self, Vec<MachineOutput<R>>) {
        let Recovered { head, tiles, newest, signatures, frozen } = recovered;
        let mut machine = Self {
            origin,
            limits,
            clock,
            head,
            tiles,
            published: None,
            pool: SubmissionQueue::new(),
            found: Vec::new(),
            unkept: Vec::new(),
            look_ups_due: 0,
            phase: Phase::Resting,
            leaving: frozen.then_some(Leave::Halt(Halt::Frozen)),
            effects: Vec::new(),
        };
        match newest {
            Some(head) => {
                machine.pin(Outgoing { head, items: Vec::new(), growth: None, signatures, attempt: 0 });
            }
            None => machine.rest(),
        }
        let effects = std::mem::take(&mut machine.effects);
        (machine, effects)
    }

    /// Handles one event and returns its effects.
    pub(crate) fn handle(&mut self, event: MachineInput<R>) -> Vec<MachineOutput<R>> {
        let phase = std::mem::replace(&mut self.phase, Phase::Left);
        match (phase, event) {
            (phase, MachineInput::Submitted { submission, waiter, in_inbox }) => {
                self.phase = phase;
                self.pool.push(PooledSubmission { submission, first: waiter, more: Vec::new(), in_inbox });
            }
            (Phase::Resting, MachineInput::Seal(now)) => self.seal(now),
            (phase @ Phase::Resting, MachineInput::HandOver) => {
                self.phase = phase;
                self.hand_over();
            }
            (Phase::LookingUp(draft), MachineInput::LookedUp(known)) => self.looked_up(draft, known),
            // Commit point. A crash before it loses nothing that was promised; after it, the next start publishes
            // the committed head.
            (Phase::Committing(flight), MachineInput::Committed(outcome)) => self.committed(flight, outcome),
            (Phase::Settling(flight), MachineInput::TakenOver(head)) => self.settled(flight, head),
            (Phase::Claiming(flight), MachineInput::Pinned(outcome)) => self.claimed(flight, outcome),
            (Phase::Pinning(outgoing), MachineInput::Pinned(outcome)) => self.pinned(outgoing, outcome),
            (Phase::Signing(outgoing), MachineInput::Signed(outcome)) => self.signed(outgoing, outcome),
            (Phase::Resting, MachineInput::Leave(leave)) => self.leave(leave),
            // The next leader's take-over settles the commit, and this process passes the items on to that leader.
            (Phase::Settling(flight), MachineInput::Leave(leave)) => {
                self.leave_with(flight.draft.items, leave)
            }
            (Phase::Signing(outgoing), MachineInput::Leave(leave)) if leave.forbids_signing() => {
                self.leave_with(outgoing.items, leave);
            }
            (phase, MachineInput::Leave(leave)) => {
                self.phase = phase;
                if self.leaving.is_none() || leave.forbids_signing() {
                    self.leaving = Some(leave);
                }
            }
            (phase, event) => {
                debug_assert!(false, "{} does not answer the phase", event.name());
                self.phase = phase;
            }
        }
        std::mem::take(&mut self.effects)
    }

    /// Returns whether any submission waits for a batch.
    pub(crate) fn has_work(&self) -> bool {
        !self.pool.is_empty()
    }

    /// Returns whether any signature is not stored yet.
    pub(crate) fn has_unkept(&self) -> bool {
        !self.unkept.is_empty()
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    fn rest(&mut self) {
        self.phase = Phase::Resting;
        if let Some(leave) = self.leaving.take() {
            self.leave(leave);
        }
    }

    /// Ends here if the reason to leave forbids signing; returns the items otherwise.
    fn unless_forbidden(&mut self, items: Vec<PooledSubmission<R>>) -> Option<Vec<PooledSubmission<R>>> {
        match self.leaving.take_if(|leave| leave.forbids_signing()) {
            Some(leave) => {
                self.leave_with(items, leave);
                None
            }
            None => Some(items),
        }
    }

    fn leave_with(&mut self, items: Vec<PooledSubmission<R>>, leave: Leave) {
        let answer = leave.answer();
        items.into_iter().for_each(|item| self.answer(item, &answer));
        self.leave(leave);
    }

    fn leave(&mut self, leave: Leave) {
        let answer = leave.answer();
        let waiting: Vec<PooledSubmission<R>> = self.pool.drain().collect();
        waiting.into_iter().for_each(|item| self.answer(item, &answer));
        self.hand_over();
        self.effects.push(MachineOutput::Leave(leave));
        self.phase = Phase::Left;
    }

    fn refuse(&mut self, item: PooledSubmission<R>, why: SubmitError) {
        self.answer(item, &CommandAnswer::Done(Err(why)));
    }

    fn answer(&mut self, item: PooledSubmission<R>, answer: &CommandAnswer) {
        let answers = item.into_waiters().map(|waiter| MachineOutput::Answer(waiter, answer.clone()));
        self.effects.extend(answers);
    }
}

impl Leave {
    /// Returns whether the batch in progress itself may be the fork: it is then neither pinned nor signed nor
    /// shown. It is committed all the same, and the next leader's checks cover it.
    fn forbids_signing(&self) -> bool {
        use Halt::{Refused, WitnessAhead, WitnessDisagrees};
        matches!(self, Self::Halt(WitnessAhead { .. } | WitnessDisagrees { .. } | Refused(_)))
    }

    fn answer(&self) -> CommandAnswer {
        match self {
            Self::StepDown(_) => CommandAnswer::HandBack,
            Self::Halt(halt) => CommandAnswer::Done(Err(SubmitError::Halted(halt.clone()))),
        }
    }
}

impl<R> MachineInput<R> {
    fn name(&self) -> &'static str {
        match self {
            Self::Submitted { .. } => "a submission",
            Self::Seal(_) => "a seal",
            Self::LookedUp(_) => "a look-up",
            Self::Committed(_) => "a commit",
            Self::TakenOver(_) => "a take-over",
            Self::Pinned(_) => "a pin",
            Self::Signed(_) => "a signature",
            Self::HandOver => "a hand-over",
            Self::Leave(_) => "the end of leading",
        }
    }
}
