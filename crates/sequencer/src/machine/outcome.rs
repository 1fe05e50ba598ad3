//! Transitions of the machine after a commit, by its outcome.

use std::sync::Arc;

use store::{Batch, CommitError, Head, PinError, StoreError};

use super::{BatchDraft, Flight, Leave, Machine, MachineOutput, Outgoing, Phase};
use crate::pool::PooledSubmission;
use crate::{Halt, SubmitError};

impl<R> Machine<R> {
    pub(super) fn committed(&mut self, flight: Flight<R>, outcome: Result<(), CommitError>) {
        match outcome {
            Ok(()) => self.happened(flight, None),
            Err(CommitError::Fenced) => {
                self.leave_with(flight.draft.items, Leave::StepDown("another process leads"));
            }
            Err(CommitError::AlreadySeen | CommitError::GuardTaken) => self.look_again(flight),
            Err(CommitError::NotCommitted(error)) => self.not_committed(flight, error),
            Err(CommitError::Unknown(_)) => match self.leaving.take() {
                Some(leave) => self.leave_with(flight.draft.items, leave),
                None => {
                    self.effects.push(MachineOutput::TakeOver);
                    self.phase = Phase::Settling(flight);
                }
            },
        }
    }

    /// Looks up all keys of the batch, once, as one is taken that no look-up has found so far. This process holds the
    /// epoch, so if that happens twice the database contradicts itself.
    fn look_again(&mut self, flight: Flight<R>) {
        let draft = flight.draft;
        self.expect_known();
        if draft.thorough {
            let why = "an entry is refused as taken that no look-up finds".to_owned();
            return self.leave_with(draft.items, Leave::Halt(Halt::Damaged(why)));
        }
        self.look_up(BatchDraft { thorough: true, ..draft });
    }

    fn not_committed(&mut self, mut flight: Flight<R>, error: StoreError) {
        flight.attempt += 1;
        match error {
            StoreError::Damaged(why) => self.leave_with(flight.draft.items, Leave::Halt(Halt::Damaged(why))),
            StoreError::Frozen => self.leave_with(flight.draft.items, Leave::Halt(Halt::Frozen)),
            StoreError::Unavailable(_) | StoreError::Storage(..)
                if flight.attempt < self.limits.commit_attempts && self.leaving.is_none() =>
            {
                self.send(flight);
            }
            error => self.give_up(flight.draft.items, error),
        }
    }

    fn send(&mut self, flight: Flight<R>) {
        let after = self.limits.pause(flight.attempt);
        self.effects.push(MachineOutput::Commit { batch: Arc::clone(&flight.batch), after });
        self.phase = Phase::Committing(flight);
    }

    /// Settles a commit of unknown outcome by the head that a take-over returned. That head is durable, and no
    /// older commit can succeed any more.
    pub(super) fn settled(&mut self, mut flight: Flight<R>, now: Head) {
        let Batch { from, to, .. } = &*flight.batch;
        let alone = now.epoch == self.head.epoch + 1;
        // A batch without entries is repeated in any case: it settles the same inbox items.
        if alone && !flight.batch.entries.is_empty() && same_but_epoch(&now, to) {
            self.happened(flight, Some(now.epoch));
        } else if same_but_epoch(&now, from) {
            self.head.epoch = now.epoch;
            let batch = Arc::make_mut(&mut flight.batch);
            batch.from.epoch = now.epoch;
            batch.to.epoch = now.epoch;
            flight.attempt += 1;
            self.effects.push(MachineOutput::Claim(self.pin_of(now.size(), now.root())));
            self.phase = Phase::Claiming(flight);
        } else if alone {
            let why =
                format!("no other process led, but the tree has size {} after an unknown commit", now.size());
            self.leave_with(flight.draft.items, Leave::Halt(Halt::Damaged(why)));
        } else {
            // Others led meanwhile, and may even have committed the very same batch. Their work is checked against
            // the pin before this process leads again.
            self.leave_with(flight.draft.items, Leave::StepDown("others led while a commit was unknown"));
        }
    }

    /// Commits in the new epoch, now that the pin is claimed for it.
    pub(super) fn claimed(&mut self, flight: Flight<R>, outcome: Result<(), PinError>) {
        if let Some(leave) = self.leaving.take() {
            return self.leave_with(flight.draft.items, leave);
        }
        match outcome {
            Ok(()) => self.send(flight),
            Err(error) => {
                let (size, root) = (self.head.size(), self.head.root());
                self.pin_refused(flight.draft.items, error, size, root);
            }
        }
    }

    /// Continues with the committed batch. `epoch`: the one that a take-over has raised meanwhile, and that has no
    /// pin yet.
    fn happened(&mut self, flight: Flight<R>, epoch: Option<u64>) {
        let Flight { draft, batch, growth, tiles, .. } = flight;
        self.head = batch.to.clone();
        self.head.epoch = epoch.unwrap_or(self.head.epoch);
        self.tiles = tiles;
        self.found.clear();
        self.unkept.clear();
        if batch.entries.is_empty() {
            return self.rest();
        }
        let Some(items) = self.unless_forbidden(draft.items) else { return };
        if batch.freezes() && !matches!(self.leaving, Some(Leave::Halt(_))) {
            self.leaving = Some(Leave::Halt(Halt::Frozen));
        }
        let head = batch.to.committed();
        let outgoing = Outgoing { head, items, growth: Some(growth), signatures: None, attempt: 0 };
        match epoch {
            Some(_) => self.claim(outgoing),
            None => self.pin(outgoing),
        }
    }

    /// Answers the batch's submitters with the database's error; they may retry, and other submissions are served.
    pub(super) fn give_up(&mut self, items: Vec<PooledSubmission<R>>, error: StoreError) {
        let error = Arc::new(error);
        for item in items {
            self.refuse(item, SubmitError::Store(Arc::clone(&error)));
        }
        self.found.clear(); // the inbox shows them again
        self.rest();
    }
}

fn same_but_epoch(found: &Head, expected: &Head) -> bool {
    *found == Head { epoch: found.epoch, ..expected.clone() }
}
