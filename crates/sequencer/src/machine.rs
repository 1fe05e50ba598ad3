//! The state machine in which history could fork: events in, effects out.
//!
//! It leads from one committed head to the next, one batch at a time:
//!
//! ```text
//! resting ─▶ looking up ─▶ committing ─▶ pinning ─▶ signing ─▶ resting
//!    ▲            ▲            │ ▲
//!    │            └─ taken? ───┤ │ as before
//!    └── certainly not ────────┤ │
//!                              ▼ │
//!                           settling ── happened ─▶ pinning
//! ```
//!
//! Only `pinning` leads to `signing`, and only a committed head gets there. Starting is the same
//! road: a recovered head enters at `pinning`. Whoever performs the effects reports each outcome as
//! the next event; at most one effect of the kinds that report is under way at any time.
//!
//! Not here: tasks, timers, channels (`lead`), the lease and the inbox (`driver`, `inbox`).

use std::sync::Arc;
use std::time::Duration;

use merkle::tile::OpenTiles;
use merkle::{EntryDigest, Growth, LeafIndex};
use store::{Batch, CommitError, CommittedHead, Head, HeadSignature, StoreError};

use crate::clock::{ClockJudge, Now};
use crate::draft::{self, Built, Claims, Known, LookUp, Verdict};
use crate::handle::Answer;
use crate::pin::{Pin, PinError};
use crate::pool::{Item, Pool};
use crate::{Halt, Limits, Placement, PublishedHead, SignFailed, Submission, SubmitError};

/// All that can happen. `R` is the way back to a waiter.
#[derive(Debug)]
pub(crate) enum Event<R> {
    /// Somebody wants a place.
    Submitted { submission: Arc<Submission>, waiter: R, in_inbox: bool },
    /// Time to make a batch of what waits.
    Seal(Now),
    /// Answers [`Effect::LookUp`].
    LookedUp(Result<Known, StoreError>),
    /// Answers [`Effect::Commit`].
    Committed(Result<(), CommitError>),
    /// Answers [`Effect::TakeOver`], which is tried until it is answered.
    TakenOver(Head),
    /// Answers [`Effect::Pin`].
    Pinned(Result<(), PinError>),
    /// Answers [`Effect::Sign`].
    Signed(Result<Vec<HeadSignature>, SignFailed>),
    /// Another process may try now.
    LeaseLost,
}

/// All that the machine asks for. The first five report back.
#[derive(Debug)]
pub(crate) enum Effect<R> {
    LookUp(LookUp),
    Commit { batch: Arc<Batch>, after: Duration },
    TakeOver,
    Pin(Pin),
    Sign { head: CommittedHead, after: Duration },
    Publish { head: Arc<PublishedHead>, policy: LeafIndex },
    Keep(Vec<HeadSignature>),
    Answer(R, Answer),
    Leave(Leave),
}

/// Why the machine ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Somebody else leads, or shall.
    StepDown(&'static str),
    /// Nobody here may lead until a person has looked.
    Halt(Halt),
}

/// What a process knows after taking over.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) head: Head,
    pub(crate) tiles: OpenTiles,
    /// The newest batch; `None` while the log is empty.
    pub(crate) newest: Option<CommittedHead>,
    /// Its signatures, if all that the signer makes are kept.
    pub(crate) signatures: Option<Vec<HeadSignature>>,
}

#[derive(Debug)]
enum Phase<R> {
    Resting,
    LookingUp(Draft<R>),
    Committing(Flight<R>),
    Settling(Flight<R>),
    Pinning(Outgoing<R>),
    Signing(Outgoing<R>),
    Left,
}

/// Taken from the pool, not yet a batch.
#[derive(Debug)]
struct Draft<R> {
    at: u64,
    items: Vec<Item<R>>,
    /// The second look, after the database said that something is taken.
    thorough: bool,
}

/// A batch whose commit was asked for.
#[derive(Debug)]
struct Flight<R> {
    draft: Draft<R>,
    batch: Arc<Batch>,
    growth: Growth,
    tiles: OpenTiles,
    attempt: u32,
}

/// A committed head that is not published yet.
#[derive(Debug)]
struct Outgoing<R> {
    head: CommittedHead,
    items: Vec<Item<R>>,
    growth: Option<Growth>,
    signatures: Option<Vec<HeadSignature>>,
    attempt: u32,
}

pub(crate) struct Machine<R> {
    origin: String,
    limits: Limits,
    clock: ClockJudge,
    /// The committed head. Its epoch is this process's.
    head: Head,
    tiles: OpenTiles,
    published: Option<Arc<PublishedHead>>,
    pool: Pool<R>,
    /// Inbox items of this round that are in the log already: its commit settles them.
    found: Vec<(EntryDigest, LeafIndex)>,
    phase: Phase<R>,
    lease_lost: bool,
    effects: Vec<Effect<R>>,
}

impl<R> Machine<R> {
    /// Starts from what was recovered. The head enters where a committed batch's would.
    pub(crate) fn start(
        origin: String,
        limits: Limits,
        clock: ClockJudge,
        recovered: Recovered,
    ) -> (Self, Vec<Effect<R>>) {
        let Recovered { head, tiles, newest, signatures } = recovered;
        let mut machine = Self {
            origin,
            limits,
            clock,
            head,
            tiles,
            published: None,
            pool: Pool::new(),
            found: Vec::new(),
            phase: Phase::Resting,
            lease_lost: false,
            effects: Vec::new(),
        };
        if let Some(head) = newest {
            machine.pin(Outgoing { head, items: Vec::new(), growth: None, signatures, attempt: 0 });
        }
        let effects = std::mem::take(&mut machine.effects);
        (machine, effects)
    }

    /// One event, and all that follows from it.
    pub(crate) fn handle(&mut self, event: Event<R>) -> Vec<Effect<R>> {
        let phase = std::mem::replace(&mut self.phase, Phase::Left);
        match (phase, event) {
            (phase, Event::Submitted { submission, waiter, in_inbox }) => {
                self.phase = phase;
                self.pool.push(Item { submission, first: waiter, more: Vec::new(), in_inbox });
            }
            (Phase::Resting, Event::Seal(now)) => self.seal(now),
            (Phase::LookingUp(draft), Event::LookedUp(known)) => self.looked_up(draft, known),
            // Commit point. A crash before it loses nothing we promised; after it, the next start
            // publishes what is committed.
            (Phase::Committing(flight), Event::Committed(outcome)) => self.committed(flight, outcome),
            (Phase::Settling(flight), Event::TakenOver(head)) => self.settled(flight, head),
            (Phase::Pinning(outgoing), Event::Pinned(outcome)) => self.pinned(outgoing, outcome),
            (Phase::Signing(outgoing), Event::Signed(outcome)) => self.signed(outgoing, outcome),
            (Phase::Resting, Event::LeaseLost) => self.leave(Leave::StepDown("the lease is lost")),
            (Phase::Settling(flight), Event::LeaseLost) => {
                // The next leader settles it by taking over, and this process by asking it.
                self.leave_with(flight.draft.items, Leave::StepDown("the lease is lost"));
            }
            (phase, Event::LeaseLost) => {
                self.phase = phase;
                self.lease_lost = true;
            }
            (phase, event) => {
                debug_assert!(false, "{} does not answer the phase", event.name());
                self.phase = phase;
            }
        }
        std::mem::take(&mut self.effects)
    }

    /// Whether anything waits for a batch.
    pub(crate) fn has_work(&self) -> bool {
        !self.pool.is_empty()
    }

    /// The committed head.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    fn seal(&mut self, now: Now) {
        let wall = match self.clock.seconds(now) {
            Ok(wall) => wall,
            Err(halt) => return self.leave(Leave::Halt(halt)),
        };
        let at = wall.max(self.head.at);
        let mut items = self.pool.take(self.limits.batch_entries, self.limits.batch_bytes);
        items = self.keep_if(items, |machine, item| machine.admissible(&item.submission, at));
        if items.is_empty() {
            return self.rest();
        }
        self.look_up(Draft { at, items, thorough: false });
    }

    /// What can be said without the database.
    fn admissible(&self, submission: &Submission, at: u64) -> Result<(), SubmitError> {
        if self.head.batch == 0 && !submission.is_policy {
            Err(SubmitError::NoPolicy)
        } else if submission.decided_under != self.head.policy {
            Err(SubmitError::PolicyMoved { policy: self.head.policy })
        } else if !submission.valid.contains(at) {
            Err(SubmitError::OutsideWindow { at, window: submission.valid })
        } else {
            Ok(())
        }
    }

    fn look_up(&mut self, draft: Draft<R>) {
        self.effects.push(Effect::LookUp(LookUp::about(&draft.items, draft.thorough)));
        self.phase = Phase::LookingUp(draft);
    }

    fn looked_up(&mut self, draft: Draft<R>, known: Result<Known, StoreError>) {
        let verdicts = match known {
            Ok(known) if known.reaches_beyond(self.head.size()) => {
                // Somebody else has committed: this process is fenced and only does not know it yet.
                return self.leave_with(draft.items, Leave::StepDown("another process leads"));
            }
            Ok(known) => known.judge(&draft.items, draft.thorough),
            Err(StoreError::Damaged(why)) => {
                return self.leave_with(draft.items, Leave::Halt(Halt::Damaged(why)));
            }
            Err(error) => return self.give_up(draft.items, error),
        };
        let Some(verdicts) = verdicts else {
            let why = "a look-up has not as many answers as questions".to_owned();
            return self.leave_with(draft.items, Leave::Halt(Halt::Damaged(why)));
        };
        if self.lease_lost {
            return self.leave_with(draft.items, Leave::StepDown("the lease is lost"));
        }
        let items = self.apply(draft.items, verdicts);
        self.commit_draft(Draft { items, ..draft });
    }

    /// Answers what is known or refused; puts back what must wait for an earlier one of its batch.
    fn apply(&mut self, items: Vec<Item<R>>, verdicts: Vec<Verdict>) -> Vec<Item<R>> {
        let mut claims = Claims::default();
        let (mut kept, mut later) = (Vec::with_capacity(items.len()), Vec::new());
        for (item, verdict) in items.into_iter().zip(verdicts) {
            match verdict {
                Verdict::New if claims.add(&item.submission) => kept.push(item),
                Verdict::New => later.push(item),
                Verdict::There(index) => self.answer_known(item, index),
                Verdict::Refused(why) => self.refuse(item, why),
            }
        }
        self.pool.put_back(later);
        kept
    }

    /// Hashes the bytes that are about to be stored, grows the tree, and asks for the commit.
    fn commit_draft(&mut self, draft: Draft<R>) {
        let Draft { at, items, thorough } = draft;
        let items = self.keep_if(items, |_, item| rehash(&item.submission));
        if items.is_empty() && self.found.is_empty() {
            return self.rest();
        }
        match draft::build(&self.head, &self.tiles, at, &items) {
            Ok(built) => self.commit(Draft { at, items, thorough }, built),
            Err(halt) => self.leave_with(items, Leave::Halt(halt)),
        }
    }

    fn commit(&mut self, draft: Draft<R>, built: Built) {
        let Built { mut batch, growth, tiles } = built;
        if batch.entries.is_empty() {
            batch.to = batch.from.clone(); // it only settles inbox items
        }
        batch.settled.extend_from_slice(&self.found);
        let batch = Arc::new(batch);
        self.effects.push(Effect::Commit { batch: Arc::clone(&batch), after: Duration::ZERO });
        self.phase = Phase::Committing(Flight { draft, batch, growth, tiles, attempt: 0 });
    }

    fn committed(&mut self, flight: Flight<R>, outcome: Result<(), CommitError>) {
        match outcome {
            Ok(()) => self.happened(flight, None),
            Err(CommitError::Fenced) => {
                self.leave_with(flight.draft.items, Leave::StepDown("another process leads"));
            }
            Err(CommitError::AlreadySeen | CommitError::GuardTaken) => self.look_again(flight),
            Err(CommitError::NotCommitted(error)) => self.not_committed(flight, error),
            Err(CommitError::Unknown(_)) if self.lease_lost => {
                self.leave_with(flight.draft.items, Leave::StepDown("the lease is lost"));
            }
            Err(CommitError::Unknown(_)) => {
                self.effects.push(Effect::TakeOver);
                self.phase = Phase::Settling(flight);
            }
        }
    }

    /// Something of the batch is taken although the look-up did not say so: look at everything,
    /// once. This process holds the epoch, so a second time means that the database is not to be
    /// believed.
    fn look_again(&mut self, flight: Flight<R>) {
        let draft = flight.draft;
        if draft.thorough {
            let why = "an entry is refused as taken that no look-up finds".to_owned();
            return self.leave_with(draft.items, Leave::Halt(Halt::Damaged(why)));
        }
        self.look_up(Draft { thorough: true, ..draft });
    }

    fn not_committed(&mut self, mut flight: Flight<R>, error: StoreError) {
        flight.attempt += 1;
        match error {
            StoreError::Damaged(why) => self.leave_with(flight.draft.items, Leave::Halt(Halt::Damaged(why))),
            StoreError::Unavailable(_)
                if flight.attempt < self.limits.commit_attempts && !self.lease_lost =>
            {
                self.send(flight);
            }
            error => self.give_up(flight.draft.items, error),
        }
    }

    fn send(&mut self, flight: Flight<R>) {
        let after = self.limits.pause(flight.attempt);
        self.effects.push(Effect::Commit { batch: Arc::clone(&flight.batch), after });
        self.phase = Phase::Committing(flight);
    }

    /// What take-over shows is durable, and nothing older can happen any more.
    fn settled(&mut self, mut flight: Flight<R>, now: Head) {
        let Batch { from, to, .. } = &*flight.batch;
        let alone = now.epoch == self.head.epoch + 1;
        if alone && same_but_epoch(&now, to) {
            self.happened(flight, Some(now.epoch));
        } else if same_but_epoch(&now, from) {
            self.head.epoch = now.epoch;
            let batch = Arc::make_mut(&mut flight.batch);
            batch.from.epoch = now.epoch;
            batch.to.epoch = now.epoch;
            flight.attempt += 1;
            self.send(flight);
        } else if alone {
            let why = format!("nobody else led, and it is at size {} after an unknown commit", now.size());
            self.leave_with(flight.draft.items, Leave::Halt(Halt::Damaged(why)));
        } else {
            // Others led meanwhile, and may even have committed the very same batch. What they did
            // is checked against the pin before this process leads again.
            self.leave_with(flight.draft.items, Leave::StepDown("others led while a commit was unknown"));
        }
    }

    /// The batch is history.
    fn happened(&mut self, flight: Flight<R>, epoch: Option<u64>) {
        let Flight { draft, batch, growth, tiles, .. } = flight;
        self.head = batch.to.clone();
        self.head.epoch = epoch.unwrap_or(self.head.epoch);
        self.tiles = tiles;
        self.found.clear();
        if batch.entries.is_empty() {
            return self.rest();
        }
        let head = committed_head(&batch.to);
        let growth = Some(growth);
        self.pin(Outgoing { head, items: draft.items, growth, signatures: None, attempt: 0 });
    }

    fn pin(&mut self, outgoing: Outgoing<R>) {
        let CommittedHead { size, root, epoch, .. } = outgoing.head;
        self.effects.push(Effect::Pin(Pin { origin: self.origin.clone(), size, root, epoch }));
        self.phase = Phase::Pinning(outgoing);
    }

    fn pinned(&mut self, mut outgoing: Outgoing<R>, outcome: Result<(), PinError>) {
        match outcome {
            Ok(()) => match outgoing.signatures.take() {
                Some(signatures) => self.publish(outgoing, signatures),
                None => self.sign(outgoing),
            },
            Err(PinError::Ahead(_) | PinError::Busy(_)) => {
                self.leave_with(outgoing.items, Leave::StepDown("another process raised the pin"));
            }
            Err(PinError::Disagrees(pin)) => {
                let CommittedHead { size, root, .. } = outgoing.head;
                let halt = Halt::DatabaseDisagrees { size, signed: pin.root, database: Some(root) };
                self.leave_with(outgoing.items, Leave::Halt(halt));
            }
            Err(error) => self.leave_with(outgoing.items, Leave::Halt(Halt::Pin(error.to_string()))),
        }
    }

    fn sign(&mut self, outgoing: Outgoing<R>) {
        let after = match outgoing.attempt {
            0 => Duration::ZERO,
            attempt => self.limits.pause(attempt),
        };
        self.effects.push(Effect::Sign { head: outgoing.head, after });
        self.phase = Phase::Signing(outgoing);
    }

    fn signed(&mut self, mut outgoing: Outgoing<R>, outcome: Result<Vec<HeadSignature>, SignFailed>) {
        outgoing.attempt += 1;
        match outcome.and_then(|signatures| over_this_head(signatures, &outgoing.head)) {
            Ok(signatures) => {
                self.effects.push(Effect::Keep(signatures.clone()));
                self.publish(outgoing, signatures);
            }
            Err(_) if outgoing.attempt < self.limits.sign_attempts => self.sign(outgoing),
            Err(SignFailed(why)) => {
                let halt = Halt::Signer { size: outgoing.head.size, why };
                self.leave_with(outgoing.items, Leave::Halt(halt));
            }
        }
    }

    /// The head may be seen, then its waiters are answered: whoever holds an answer finds the head.
    fn publish(&mut self, outgoing: Outgoing<R>, signatures: Vec<HeadSignature>) {
        let Outgoing { head, items, growth, .. } = outgoing;
        let published = Arc::new(PublishedHead { head, signatures });
        self.published = Some(Arc::clone(&published));
        self.effects.push(Effect::Publish { head: published, policy: self.head.policy });
        if let Some(growth) = growth {
            for (index, item) in (growth.from().get()..).map(LeafIndex::new).zip(items) {
                self.answer_placed(item, index, &growth);
            }
        }
        self.rest();
    }

    fn answer_placed(&mut self, item: Item<R>, index: LeafIndex, growth: &Growth) {
        let path = growth.path(index);
        let placement = Placement { index, already_there: false, head: self.published.clone(), path };
        for waiter in item.more {
            let placement = Placement { already_there: true, ..placement.clone() };
            self.effects.push(Effect::Answer(waiter, Answer::Done(Ok(placement))));
        }
        self.effects.push(Effect::Answer(item.first, Answer::Done(Ok(placement))));
    }

    fn answer_known(&mut self, item: Item<R>, index: LeafIndex) {
        if item.in_inbox {
            self.found.push((item.digest(), index));
        }
        let placement = Placement { index, already_there: true, head: self.published.clone(), path: None };
        self.answer(item, &Answer::Done(Ok(placement)));
    }

    fn rest(&mut self) {
        self.phase = Phase::Resting;
        if self.lease_lost {
            self.leave(Leave::StepDown("the lease is lost"));
        }
    }

    /// The database did not take the batch; its waiters may try again, and others are served.
    fn give_up(&mut self, items: Vec<Item<R>>, error: StoreError) {
        let error = Arc::new(error);
        for item in items {
            self.refuse(item, SubmitError::Store(Arc::clone(&error)));
        }
        self.found.clear(); // the inbox shows them again
        self.rest();
    }

    fn leave_with(&mut self, items: Vec<Item<R>>, leave: Leave) {
        let answer = leave.answer();
        items.into_iter().for_each(|item| self.answer(item, &answer));
        self.leave(leave);
    }

    fn leave(&mut self, leave: Leave) {
        let answer = leave.answer();
        let waiting: Vec<Item<R>> = self.pool.drain().collect();
        waiting.into_iter().for_each(|item| self.answer(item, &answer));
        self.effects.push(Effect::Leave(leave));
        self.phase = Phase::Left;
    }

    /// Keeps the items that pass, and answers the others.
    fn keep_if(
        &mut self,
        items: Vec<Item<R>>,
        test: impl Fn(&Self, &Item<R>) -> Result<(), SubmitError>,
    ) -> Vec<Item<R>> {
        let mut kept = Vec::with_capacity(items.len());
        for item in items {
            match test(self, &item) {
                Ok(()) => kept.push(item),
                Err(why) => self.refuse(item, why),
            }
        }
        kept
    }

    fn refuse(&mut self, item: Item<R>, why: SubmitError) {
        self.answer(item, &Answer::Done(Err(why)));
    }

    fn answer(&mut self, item: Item<R>, answer: &Answer) {
        let answers = item.into_waiters().map(|waiter| Effect::Answer(waiter, answer.clone()));
        self.effects.extend(answers);
    }
}

impl Leave {
    fn answer(&self) -> Answer {
        match self {
            Self::StepDown(_) => Answer::HandBack,
            Self::Halt(halt) => Answer::Done(Err(SubmitError::Halted(halt.clone()))),
        }
    }
}

impl<R> Event<R> {
    fn name(&self) -> &'static str {
        match self {
            Self::Submitted { .. } => "a submission",
            Self::Seal(_) => "a seal",
            Self::LookedUp(_) => "a look-up",
            Self::Committed(_) => "a commit",
            Self::TakenOver(_) => "a take-over",
            Self::Pinned(_) => "a pin",
            Self::Signed(_) => "a signature",
            Self::LeaseLost => "the loss of the lease",
        }
    }
}

/// The bytes in memory now, against the digest that was computed when they came in.
fn rehash(submission: &Submission) -> Result<(), SubmitError> {
    let digest = submission.entry.digest;
    match EntryDigest::of(&submission.entry.statement) == digest {
        true => Ok(()),
        false => Err(SubmitError::DigestMismatch { digest }),
    }
}

fn over_this_head(
    signatures: Vec<HeadSignature>,
    head: &CommittedHead,
) -> Result<Vec<HeadSignature>, SignFailed> {
    match signatures.iter().all(|signature| signature.size == head.size) && !signatures.is_empty() {
        true => Ok(signatures),
        false => Err(SignFailed("the signer made no signature over this head".to_owned())),
    }
}

fn same_but_epoch(found: &Head, expected: &Head) -> bool {
    *found == Head { epoch: found.epoch, ..expected.clone() }
}

fn committed_head(head: &Head) -> CommittedHead {
    let Head { batch, epoch, at, .. } = *head;
    CommittedHead { batch, epoch, size: head.size(), root: head.root(), at }
}
