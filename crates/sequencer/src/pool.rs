//! Submissions that wait for the next batch, in order of arrival.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use merkle::EntryDigest;

use crate::Submission;

/// Submission with all callers that wait for it.
#[derive(Debug)]
pub(crate) struct PooledSubmission<R> {
    pub(crate) submission: Arc<Submission>,
    /// The caller whose decision the submission is.
    pub(crate) first: R,
    pub(crate) more: Vec<R>,
    /// `true` if the submission is also in the inbox, which the batch must then settle.
    pub(crate) in_inbox: bool,
}

impl<R> PooledSubmission<R> {
    pub(crate) fn digest(&self) -> EntryDigest {
        self.submission.entry.digest
    }

    /// Returns all waiters, the first one first.
    pub(crate) fn into_waiters(self) -> impl Iterator<Item = R> {
        std::iter::once(self.first).chain(self.more)
    }
}

/// First-in-first-out queue in which equal digests wait as one item.
#[derive(Debug)]
pub(crate) struct SubmissionQueue<R> {
    items: VecDeque<PooledSubmission<R>>,
    /// Ticket of each digest. The item with ticket `t` is at position `t - front`.
    tickets: HashMap<EntryDigest, i64>,
    front: i64,
}

impl<R> SubmissionQueue<R> {
    pub(crate) fn new() -> Self {
        Self { items: VecDeque::new(), tickets: HashMap::new(), front: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds an item at the end, or adds its waiter to an equal item that waits already. Of the two decisions the
    /// one under the newer policy is kept, and its waiter becomes the first.
    pub(crate) fn push(&mut self, item: PooledSubmission<R>) {
        if let Some(ticket) = self.tickets.get(&item.digest())
            && let Some(waiting) = self.items.get_mut((*ticket - self.front) as usize)
        {
            waiting.in_inbox |= item.in_inbox;
            let mut other = item.first;
            if item.submission.decided_under > waiting.submission.decided_under {
                waiting.submission = item.submission;
                std::mem::swap(&mut waiting.first, &mut other);
            }
            waiting.more.push(other);
            return;
        }
        self.tickets.insert(item.digest(), self.front + self.items.len() as i64);
        self.items.push_back(item);
    }

    /// Puts items back at the front, in their order.
    pub(crate) fn put_back(&mut self, items: Vec<PooledSubmission<R>>) {
        for item in items.into_iter().rev() {
            self.front -= 1;
            self.tickets.insert(item.digest(), self.front);
            self.items.push_front(item);
        }
    }

    /// Takes up to so many items and bytes, at least one item if there is any, and none after a policy statement,
    /// clock correction or freeze.
    pub(crate) fn take(&mut self, entries: usize, bytes: usize) -> Vec<PooledSubmission<R>> {
        let mut taken: Vec<PooledSubmission<R>> = Vec::with_capacity(self.items.len().min(entries));
        let mut weight = 0;
        while let Some(next) = self.items.front() {
            weight += next.submission.weight();
            if taken.len() >= entries || (weight > bytes && !taken.is_empty()) {
                break;
            }
            let last = next.submission.ends_batch();
            taken.extend(self.pop());
            if last {
                break;
            }
        }
        taken
    }

    /// Takes all items.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = PooledSubmission<R>> {
        self.tickets.clear();
        std::mem::take(&mut self.items).into_iter()
    }

    fn pop(&mut self) -> Option<PooledSubmission<R>> {
        let item = self.items.pop_front()?;
        self.front += 1;
        self.tickets.remove(&item.digest());
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use merkle::LeafIndex;

    use super::*;
    use crate::simulation::named;

    /// The same statement, decided under this policy.
    fn decided_under(policy: u64, caller: &'static str) -> PooledSubmission<&'static str> {
        let submission = Submission { decided_under: LeafIndex::new(policy), ..named(0) };
        PooledSubmission {
            submission: Arc::new(submission),
            first: caller,
            more: Vec::new(),
            in_inbox: false,
        }
    }

    #[test]
    fn the_first_waiter_is_the_one_whose_decision_is_kept() {
        for (policies, kept, waiters) in [
            ([0, 4], 4, ["second", "first"]),
            ([4, 0], 4, ["first", "second"]),
            ([4, 4], 4, ["first", "second"]),
        ] {
            let mut queue = SubmissionQueue::new();
            queue.push(decided_under(policies[0], "first"));
            queue.push(decided_under(policies[1], "second"));
            let taken = queue.take(9, 9000).pop().unwrap();
            assert_eq!(taken.submission.decided_under.get(), kept, "{policies:?}");
            assert_eq!(taken.into_waiters().collect::<Vec<_>>(), waiters, "{policies:?}");
        }
    }
}
