//! Transitions of the machine from waiting submissions to a batch that can be committed.

use std::sync::Arc;
use std::time::Duration;

use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::{AppendedBatch, StoreError};

use super::{BatchDraft, Flight, Leave, Machine, MachineOutput, Phase};
use crate::clock::Now;
use crate::command::CommandAnswer;
use crate::draft::{self, BatchClaims, KnownEntries, LookUp, MemberVerdict};
use crate::limits::CLOCK_TOLERANCE;
use crate::pool::PooledSubmission;
use crate::{Halt, Placement, Submission, SubmitError};

impl<R> Machine<R> {
    pub(super) fn seal(&mut self, now: Now) {
        let wall = match self.clock.seconds(now) {
            Ok(wall) => wall,
            Err(halt) => return self.leave(Leave::Halt(halt)),
        };
        let items = self.pool.take(self.limits.batch_entries, self.limits.batch_bytes);
        let Some(first) = items.first() else { return self.rest() };
        let correction = first.submission.corrects.filter(|correction| correction.is_of(&self.head));
        let is_behind = wall.saturating_add(CLOCK_TOLERANCE) < self.head.at;
        let at = match correction {
            Some(correction) if is_behind => wall.max(correction.time),
            _ if is_behind => return self.leave_with(items, self.behind(wall)),
            _ => wall.max(self.head.at),
        };
        let draft = BatchDraft { at, items, thorough: false };
        match self.needs_look_up(&draft) {
            true => {
                self.look_ups_due = self.look_ups_due.saturating_sub(1);
                self.look_up(draft);
            }
            false => self.commit_new(draft),
        }
    }

    /// Returns whether the database has to be asked about the draft before the commit.
    ///
    /// Usually not, as the commit itself refuses an entry or a claim that the database has. The answer is needed where
    /// something else depends on it: a decision that relied on an absence, an outcome for the inbox, or a refusal, which
    /// no statement gets that is in the log. It is also asked for after a commit was refused, as a refused commit costs more
    /// than a look-up.
    fn needs_look_up(&self, draft: &BatchDraft<R>) -> bool {
        self.look_ups_due > 0 || !draft.items.iter().all(|item| self.is_decided_by_commit(item, draft.at))
    }

    fn is_decided_by_commit(&self, item: &PooledSubmission<R>, at: u64) -> bool {
        let Submission { relied_absent, relied_free, .. } = &*item.submission;
        let relies = !relied_absent.is_empty() || !relied_free.is_empty();
        !relies && !item.in_inbox && self.admissible(&item.submission, at).is_ok()
    }

    /// Commits the draft as one that the database knows nothing of.
    fn commit_new(&mut self, draft: BatchDraft<R>) {
        let verdicts = draft.items.iter().map(|_| MemberVerdict::New).collect();
        self.commit_judged(draft, verdicts);
    }

    /// Has the next batches looked up: the database knew a submission, or will know one that waits.
    pub(super) fn expect_known(&mut self) {
        self.look_ups_due = self.limits.look_ups_after_known;
    }

    /// Nothing is committed while the clock is behind the head, unless a clock correction allows it.
    fn behind(&self, now: u64) -> Leave {
        Leave::Halt(Halt::ClockBehind { now, last: self.head.at })
    }

    pub(super) fn look_up(&mut self, draft: BatchDraft<R>) {
        self.effects.push(MachineOutput::LookUp(LookUp::about(&draft.items, draft.thorough)));
        self.phase = Phase::LookingUp(draft);
    }

    pub(super) fn looked_up(&mut self, draft: BatchDraft<R>, known: Result<KnownEntries, StoreError>) {
        let verdicts = match known {
            Ok(known) if known.reaches_beyond(self.head.size()) => {
                // Another process has committed: this one is fenced and does not know it yet.
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
        if let Some(leave) = self.leaving.take() {
            return self.leave_with(draft.items, leave);
        }
        if !verdicts.iter().all(|verdict| matches!(verdict, MemberVerdict::New)) {
            self.expect_known();
        }
        self.commit_judged(draft, verdicts);
    }

    /// Commits the members of the draft that may be appended.
    fn commit_judged(&mut self, draft: BatchDraft<R>, verdicts: Vec<MemberVerdict>) {
        let BatchDraft { at, items, thorough } = draft;
        let items = self.apply(at, items, verdicts);
        if items.is_empty() && at < self.head.at {
            return self.leave_with(items, self.behind(at));
        }
        self.commit_draft(BatchDraft { at, items, thorough });
    }

    /// Answers the items that are known or refused; returns those that may be appended, and puts back those that
    /// must wait for an earlier one of their batch.
    ///
    /// An item that is in the log is answered first, even if its decision no longer holds.
    fn apply(
        &mut self,
        at: u64,
        items: Vec<PooledSubmission<R>>,
        verdicts: Vec<MemberVerdict>,
    ) -> Vec<PooledSubmission<R>> {
        let mut claims = BatchClaims::default();
        let (mut kept, mut later) = (Vec::with_capacity(items.len()), Vec::new());
        for (item, verdict) in items.into_iter().zip(verdicts) {
            match verdict {
                MemberVerdict::There(index) => self.answer_known(item, index),
                MemberVerdict::Refused(why) => self.refuse(item, why),
                MemberVerdict::New => match self.admissible(&item.submission, at) {
                    Err(why) => self.refuse(item, why),
                    // An earlier one takes the last index, unless the commit fails: the next batch tells.
                    Ok(()) if !item.submission.may_follow(self.size_after(kept.len())) => later.push(item),
                    Ok(()) if claims.add(&item.submission) => kept.push(item),
                    Ok(()) => later.push(item),
                },
            }
        }
        if !later.is_empty() {
            self.expect_known();
        }
        self.pool.put_back(later);
        kept
    }

    /// Checks the conditions of the decision that can change between admission and batch.
    fn admissible(&self, submission: &Submission, at: u64) -> Result<(), SubmitError> {
        if self.head.batch == 0 && !submission.is_policy {
            Err(SubmitError::NoPolicy)
        } else if submission.decided_under != self.head.policy {
            Err(SubmitError::PolicyMoved { policy: self.head.policy })
        } else if submission.corrects.is_some() && at >= self.head.at {
            Err(SubmitError::NoCorrection("the log's time is not ahead of the clock"))
        } else if !submission.valid.contains(at) {
            Err(SubmitError::OutsideWindow { at, window: submission.valid })
        } else {
            submission.check_size(self.head.size())
        }
    }

    /// Returns the size of the tree once the batch has this many entries.
    fn size_after(&self, entries: usize) -> TreeSize {
        TreeSize::new(self.head.size().get() + entries as u64)
    }

    /// Hashes the bytes that are about to be stored, grows the tree, and requests the commit.
    pub(super) fn commit_draft(&mut self, draft: BatchDraft<R>) {
        let BatchDraft { at, items, thorough } = draft;
        let items = self.keep_intact(items);
        if items.is_empty() && self.found.is_empty() {
            return self.rest();
        }
        match draft::build(&self.head, &self.tiles, at, &items) {
            Ok(built) => self.commit(BatchDraft { at, items, thorough }, built),
            Err(halt) => self.leave_with(items, Leave::Halt(halt)),
        }
    }

    fn commit(&mut self, draft: BatchDraft<R>, built: AppendedBatch) {
        let AppendedBatch { mut batch, growth, tiles } = built;
        batch.settled.extend_from_slice(&self.found);
        batch.signatures.clone_from(&self.unkept);
        let batch = Arc::new(batch);
        self.effects.push(MachineOutput::Commit { batch: Arc::clone(&batch), after: Duration::ZERO });
        self.phase = Phase::Committing(Flight { draft, batch, growth, tiles, attempt: 0 });
    }

    fn answer_known(&mut self, item: PooledSubmission<R>, index: LeafIndex) {
        if item.in_inbox {
            self.found.push((item.digest(), index));
        }
        let placement = Placement { index, already_there: true, head: self.published.clone(), path: None };
        self.answer(item, &CommandAnswer::Done(Ok(placement)));
    }

    /// Keeps the items whose bytes still match their digest, and refuses the others.
    fn keep_intact(&mut self, items: Vec<PooledSubmission<R>>) -> Vec<PooledSubmission<R>> {
        let mut kept = Vec::with_capacity(items.len());
        for item in items {
            match rehash(&item.submission) {
                Ok(()) => kept.push(item),
                Err(why) => self.refuse(item, why),
            }
        }
        kept
    }
}

/// Compares the bytes in memory with the digest that was computed at submission.
fn rehash(submission: &Submission) -> Result<(), SubmitError> {
    let digest = submission.entry.digest;
    match EntryDigest::of(&submission.entry.statement) == digest {
        true => Ok(()),
        false => Err(SubmitError::DigestMismatch { digest }),
    }
}
