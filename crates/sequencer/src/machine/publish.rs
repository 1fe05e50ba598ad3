//! Transitions of the machine from a committed head to the answers: pin, sign, publish, answer.

use std::sync::Arc;
use std::time::Duration;

use merkle::{LeafIndex, RootHash, TreeGrowth, TreeSize};
use store::{CommittedHead, HeadSignature, Pin, PinError};

use super::{Leave, Machine, MachineOutput, Outgoing, Phase};
use crate::command::CommandAnswer;
use crate::pool::PooledSubmission;
use crate::{Halt, Placement, PublishedHead, SignFailed};

impl<R> Machine<R> {
    pub(super) fn pin(&mut self, outgoing: Outgoing<R>) {
        self.effects.push(MachineOutput::Pin(self.pin_of(outgoing.head.size, outgoing.head.root)));
        self.phase = Phase::Pinning(outgoing);
    }

    /// Requests the pin for a head in an epoch that has not claimed the pin yet.
    pub(super) fn claim(&mut self, outgoing: Outgoing<R>) {
        self.effects.push(MachineOutput::Claim(self.pin_of(outgoing.head.size, outgoing.head.root)));
        self.phase = Phase::Pinning(outgoing);
    }

    /// Makes a pin of this process's epoch.
    pub(super) fn pin_of(&self, size: TreeSize, root: RootHash) -> Pin {
        Pin { origin: self.origin.clone(), size, root, epoch: self.head.epoch }
    }

    pub(super) fn pinned(&mut self, mut outgoing: Outgoing<R>, outcome: Result<(), PinError>) {
        match outcome {
            Ok(()) => {
                let Some(items) = self.unless_forbidden(std::mem::take(&mut outgoing.items)) else { return };
                outgoing.items = items;
                match outgoing.signatures.take() {
                    Some(signatures) => self.publish(outgoing, signatures),
                    None => self.sign(outgoing),
                }
            }
            Err(error) => {
                let CommittedHead { size, root, .. } = outgoing.head;
                self.pin_refused(outgoing.items, error, size, root);
            }
        }
    }

    /// Handles a pin that does not allow this head, or cannot be written: nothing is signed.
    pub(super) fn pin_refused(
        &mut self,
        items: Vec<PooledSubmission<R>>,
        error: PinError,
        size: TreeSize,
        root: RootHash,
    ) {
        let leave = match error {
            PinError::Ahead(_) | PinError::Superseded(_) => Leave::StepDown("another process raised the pin"),
            PinError::Disagrees(pin) => {
                Leave::Halt(Halt::DatabaseDisagrees { size, signed: pin.root, database: Some(root) })
            }
            error => Leave::Halt(Halt::Pin(error.to_string())),
        };
        self.leave_with(items, leave);
    }

    fn sign(&mut self, outgoing: Outgoing<R>) {
        let after = match outgoing.attempt {
            0 => Duration::ZERO,
            attempt => self.limits.pause(attempt),
        };
        self.effects.push(MachineOutput::Sign { head: outgoing.head, after });
        self.phase = Phase::Signing(outgoing);
    }

    pub(super) fn signed(
        &mut self,
        mut outgoing: Outgoing<R>,
        outcome: Result<Vec<HeadSignature>, SignFailed>,
    ) {
        outgoing.attempt += 1;
        match outcome.and_then(|signatures| over_this_head(signatures, &outgoing.head)) {
            Ok(signatures) => {
                self.unkept.extend_from_slice(&signatures);
                self.publish(outgoing, signatures);
            }
            Err(_) if outgoing.attempt < self.limits.sign_attempts => self.sign(outgoing),
            Err(SignFailed(why)) => {
                let halt = Halt::Signer { size: outgoing.head.size, why };
                self.leave_with(outgoing.items, Leave::Halt(halt));
            }
        }
    }

    /// Publishes the head first and answers its submitters then, so that a client with an answer always finds the
    /// head.
    fn publish(&mut self, outgoing: Outgoing<R>, signatures: Vec<HeadSignature>) {
        let Outgoing { head, items, growth, .. } = outgoing;
        let published = Arc::new(PublishedHead { head, signatures });
        self.published = Some(Arc::clone(&published));
        self.effects.push(MachineOutput::Publish { head: published, policy: self.head.policy });
        if let Some(growth) = growth {
            for (index, item) in (growth.from().get()..).map(LeafIndex::new).zip(items) {
                self.answer_placed(item, index, &growth);
            }
        }
        self.rest();
    }

    /// Hands over the signatures that no batch has stored yet.
    pub(super) fn hand_over(&mut self) {
        if !self.unkept.is_empty() {
            self.effects.push(MachineOutput::Keep(std::mem::take(&mut self.unkept)));
        }
    }

    fn answer_placed(&mut self, item: PooledSubmission<R>, index: LeafIndex, growth: &TreeGrowth) {
        let path = growth.path(index);
        let placement = Placement { index, already_there: false, head: self.published.clone(), path };
        for waiter in item.more {
            let placement = Placement { already_there: true, ..placement.clone() };
            self.effects.push(MachineOutput::Answer(waiter, CommandAnswer::Done(Ok(placement))));
        }
        self.effects.push(MachineOutput::Answer(item.first, CommandAnswer::Done(Ok(placement))));
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
