//! Parked calls: they wait until another call of their tool, in their session or under their AgentROA envelope, is settled,
//! since their cost depends on it (V-12, R-48).
//!
//! A wait can take as long as a tool runs. So parked calls are bounded in number and bytes, per session or envelope and in
//! total, and a settlement wakes only the first call of each tool: one agent's calls do not hold up the others.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::work_item::{AwaitedSettlement, SettlementWait, WorkItem};
use crate::limits::{
    PARKED_BYTES, PARKED_CALLS, PARKED_CHECK_BYTES, PARKED_CHECK_CALLS, PARKED_SESSION_BYTES,
    PARKED_SESSION_CALLS,
};

/// The parked calls, in the order of their arrival.
#[derive(Default)]
pub struct ParkedCalls {
    calls: Vec<ParkedCall>,
    bytes: usize,
    /// Index, among the first calls of each tool, of the one that the next [`take_due`](Self::take_due) begins with.
    next: usize,
}

struct ParkedCall {
    item: WorkItem,
    awaited: AwaitedSettlement,
    since: Instant,
    bytes: usize,
}

/// Result of [`ParkedCalls::take_due`].
pub struct ParkedCallsDue {
    /// Calls that waited too long, or whose callers have gone.
    pub late: Vec<WorkItem>,
    /// Calls to decide again.
    pub ready: Vec<WorkItem>,
    /// The streams of the sessions and envelopes in which the `ready` calls wait.
    pub streams: Vec<String>,
}

impl ParkedCalls {
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Parks a call, or returns it if a bound is reached.
    pub fn park(&mut self, item: WorkItem, wait: SettlementWait) -> Result<(), WorkItem> {
        let SettlementWait { awaited, since, bytes } = wait;
        let of_session = self.calls.iter().filter(|call| call.awaited.stream == awaited.stream);
        let (count, held) = of_session.fold((0, 0), |(count, held), call| (count + 1, held + call.bytes));
        let too_many = count >= PARKED_SESSION_CALLS || self.calls.len() >= PARKED_CALLS;
        // The first call of a session or an envelope may be as large as a message can be.
        let too_long =
            (count > 0 && held + bytes > PARKED_SESSION_BYTES) || self.bytes + bytes > PARKED_BYTES;
        if too_many || too_long {
            return Err(item);
        }
        self.bytes += bytes;
        let index = self.calls.partition_point(|call| call.since <= since);
        self.calls.insert(index, ParkedCall { item, awaited, since, bytes });
        Ok(())
    }

    /// Takes the first call of each tool from the changed streams, to decide it again. Its commit wakes the next.
    pub fn wake(&mut self, changed: &HashSet<&str>) -> Vec<WorkItem> {
        let is_awake = |index: &usize| changed.contains(&*self.calls[*index].awaited.stream);
        let indices = self.first_calls().into_iter().filter(is_awake).collect();
        self.remove(indices).into_iter().map(|call| call.item).collect()
    }

    /// Takes the calls that waited longer than `longest`, and some others to decide again, since the call they wait for
    /// may have been settled by another process, or be gone.
    pub fn take_due(&mut self, longest: Duration) -> ParkedCallsDue {
        let is_late = |call: &ParkedCall| call.item.is_abandoned() || call.since.elapsed() > longest;
        let late = (0..self.calls.len()).filter(|index| is_late(&self.calls[*index])).collect();
        let late = self.remove(late).into_iter().map(|call| call.item).collect();
        let next = self.next_to_check();
        let ready = self.remove(next);
        let streams = ready.iter().map(|call| call.awaited.stream.clone()).collect();
        ParkedCallsDue { late, ready: ready.into_iter().map(|call| call.item).collect(), streams }
    }

    /// Returns the indices of the calls that are checked next: in turn the first calls of each tool, up to
    /// [`PARKED_CHECK_CALLS`] and, except for the last one, [`PARKED_CHECK_BYTES`].
    fn next_to_check(&mut self) -> Vec<usize> {
        let mut firsts = self.first_calls();
        let begin = self.next.checked_rem(firsts.len()).unwrap_or(0);
        firsts.rotate_left(begin);
        firsts.truncate(PARKED_CHECK_CALLS);
        let mut bytes = 0;
        let last = firsts.iter().position(|index| {
            bytes += self.calls[*index].bytes;
            bytes > PARKED_CHECK_BYTES
        });
        firsts.truncate(last.map_or(firsts.len(), |last| last + 1));
        self.next = self.next.checked_add(firsts.len()).unwrap_or(0);
        firsts
    }

    /// Takes all calls.
    pub fn drain(&mut self) -> impl Iterator<Item = WorkItem> {
        std::mem::take(self).calls.into_iter().map(|call| call.item)
    }

    /// Returns the index of the first call of each tool of each session or envelope.
    fn first_calls(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        let indices = self.calls.iter().enumerate().filter(|(_, call)| seen.insert(&call.awaited));
        indices.map(|(index, _)| index).collect()
    }

    fn remove(&mut self, mut indices: Vec<usize>) -> Vec<ParkedCall> {
        indices.sort_unstable();
        let mut removed: Vec<ParkedCall> =
            indices.into_iter().rev().map(|index| self.calls.remove(index)).collect();
        removed.reverse();
        self.bytes -= removed.iter().map(|call| call.bytes).sum::<usize>();
        removed
    }
}
