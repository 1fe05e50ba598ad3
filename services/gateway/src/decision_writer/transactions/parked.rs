//! Parked calls: they wait until another call of their tool is settled, since their cost depends on it (V-12).
//!
//! A wait can take as long as a tool runs. So parked calls are bounded in number and bytes, per session and in total,
//! and a settlement wakes only the first call of each tool: one agent's calls do not hold up the others.

use std::collections::HashSet;
use std::time::Duration;

use super::work::AwaitedSettlement;
use crate::decision_writer::transactions::Job;
use crate::limits::{
    PARKED_BYTES, PARKED_CALLS, PARKED_CHECK_BYTES, PARKED_CHECK_CALLS, PARKED_SESSION_BYTES,
    PARKED_SESSION_CALLS,
};

/// The parked calls, in the order of their arrival.
#[derive(Default)]
pub struct ParkedCalls {
    calls: Vec<Call>,
    bytes: usize,
    /// Offset of the first call that the next `look` takes.
    next: usize,
}

struct Call {
    job: Job,
    awaited: AwaitedSettlement,
    bytes: usize,
}

/// Result of [`ParkedCalls::take_due`].
pub struct ParkedCallsDue {
    /// Calls that waited too long, or whose callers have gone.
    pub late: Vec<Job>,
    /// Calls to decide again.
    pub ready: Vec<Job>,
    /// The session streams of the `ready` calls.
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
    pub fn park(&mut self, job: Job, awaited: AwaitedSettlement) -> Result<(), Job> {
        let bytes = job.bytes();
        let of_session = self.calls.iter().filter(|call| call.awaited.stream == awaited.stream);
        let (count, held) = of_session.fold((0, 0), |(count, held), call| (count + 1, held + call.bytes));
        let too_many = count >= PARKED_SESSION_CALLS || self.calls.len() >= PARKED_CALLS;
        // The first call of a session may be as large as a message can be.
        let too_long =
            (count > 0 && held + bytes > PARKED_SESSION_BYTES) || self.bytes + bytes > PARKED_BYTES;
        if too_many || too_long {
            return Err(job);
        }
        self.bytes += bytes;
        let at = self.calls.partition_point(|call| call.job.since() <= job.since());
        self.calls.insert(at, Call { job, awaited, bytes });
        Ok(())
    }

    /// Takes the first call of each tool from the changed streams, to decide it again. Its commit wakes the next.
    pub fn wake(&mut self, moved: &HashSet<&str>) -> Vec<Job> {
        let indices =
            self.firsts().into_iter().filter(|index| moved.contains(&*self.calls[*index].awaited.stream));
        let indices = indices.collect();
        self.remove(indices).into_iter().map(|call| call.job).collect()
    }

    /// Takes the calls that waited longer than `longest`, and some others to decide again, since the call they wait for
    /// may have been settled by another process, or be gone.
    pub fn take_due(&mut self, longest: Duration) -> ParkedCallsDue {
        let is_over = |call: &Call| call.job.is_abandoned() || call.job.since().elapsed() > longest;
        let over = (0..self.calls.len()).filter(|index| is_over(&self.calls[*index])).collect();
        let late = self.remove(over).into_iter().map(|call| call.job).collect();
        let mut firsts = self.firsts();
        let (count, mut bytes) = (firsts.len(), 0);
        firsts.rotate_left(self.next.checked_rem(count).unwrap_or(0));
        let mut some: Vec<usize> = firsts.into_iter().take(PARKED_CHECK_CALLS).collect();
        let enough = some.iter().position(|index| {
            bytes += self.calls[*index].bytes;
            bytes > PARKED_CHECK_BYTES
        });
        some.truncate(enough.map_or(some.len(), |last| last + 1));
        self.next = self.next.checked_add(some.len()).unwrap_or(0);
        let ready = self.remove(some);
        let streams = ready.iter().map(|call| call.awaited.stream.clone()).collect();
        ParkedCallsDue { late, ready: ready.into_iter().map(|call| call.job).collect(), streams }
    }

    /// Takes all calls.
    pub fn drain(&mut self) -> impl Iterator<Item = Job> {
        std::mem::take(self).calls.into_iter().map(|call| call.job)
    }

    /// Returns the index of the first call of each tool of each session.
    fn firsts(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        let indices = self.calls.iter().enumerate().filter(|(_, call)| seen.insert(&call.awaited));
        indices.map(|(index, _)| index).collect()
    }

    fn remove(&mut self, mut indices: Vec<usize>) -> Vec<Call> {
        indices.sort_unstable();
        let mut removed: Vec<Call> =
            indices.into_iter().rev().map(|index| self.calls.remove(index)).collect();
        removed.reverse();
        self.bytes -= removed.iter().map(|call| call.bytes).sum::<usize>();
        removed
    }
}
