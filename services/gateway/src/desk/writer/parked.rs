//! Calls that wait until another one of their tool is settled, which says what the next one costs (V-12).
//!
//! They wait for as long as a tool takes. So they are few, of each session and together, and when something is settled only
//! the first of each tool has another go: whatever one agent sends, the others are not held up by it.

use std::collections::HashSet;
use std::time::Duration;

use super::work::Turn;
use crate::desk::writer::Job;
use crate::limits::{
    PARKED_BYTES, PARKED_CALLS, PARKED_LOOK_BYTES, PARKED_LOOK_CALLS, PARKED_SESSION_BYTES,
    PARKED_SESSION_CALLS,
};

/// The calls, in the order in which they came.
#[derive(Default)]
pub struct Parked {
    calls: Vec<Call>,
    bytes: usize,
    /// Which of the first ones is looked at next.
    next: usize,
}

struct Call {
    job: Job,
    turn: Turn,
    bytes: usize,
}

/// What was found when it was looked.
pub struct Looked {
    /// What waited for too long.
    pub late: Vec<Job>,
    /// What has another go.
    pub ready: Vec<Job>,
    /// The sessions of that.
    pub streams: Vec<String>,
}

impl Parked {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Lets a call wait. One too many comes back.
    pub fn park(&mut self, job: Job, turn: Turn) -> Result<(), Job> {
        let bytes = job.bytes();
        let of_session = self.calls.iter().filter(|call| call.turn.stream == turn.stream);
        let (count, held) = of_session.fold((0, 0), |(count, held), call| (count + 1, held + call.bytes));
        let too_many = count >= PARKED_SESSION_CALLS || self.calls.len() >= PARKED_CALLS;
        // A session's first may be as long as a message can be.
        let too_long =
            (count > 0 && held + bytes > PARKED_SESSION_BYTES) || self.bytes + bytes > PARKED_BYTES;
        if too_many || too_long {
            return Err(job);
        }
        self.bytes += bytes;
        let at = self.calls.partition_point(|call| call.job.since() <= job.since());
        self.calls.insert(at, Call { job, turn, bytes });
        Ok(())
    }

    /// Something was settled in these streams: the first of each tool has another go. If it goes through, that wakes the next.
    pub fn wake(&mut self, moved: &HashSet<&str>) -> Vec<Job> {
        let places =
            self.firsts().into_iter().filter(|place| moved.contains(&*self.calls[*place].turn.stream));
        let places = places.collect();
        self.remove(places).into_iter().map(|call| call.job).collect()
    }

    /// What waited for longer than that, and some that may have been settled by another process, or forgotten.
    pub fn look(&mut self, longest: Duration) -> Looked {
        let is_over = |call: &Call| call.job.is_abandoned() || call.job.since().elapsed() > longest;
        let over = (0..self.calls.len()).filter(|place| is_over(&self.calls[*place])).collect();
        let late = self.remove(over).into_iter().map(|call| call.job).collect();
        let mut firsts = self.firsts();
        let (count, mut bytes) = (firsts.len(), 0);
        firsts.rotate_left(self.next.checked_rem(count).unwrap_or(0));
        let mut some: Vec<usize> = firsts.into_iter().take(PARKED_LOOK_CALLS).collect();
        let enough = some.iter().position(|place| {
            bytes += self.calls[*place].bytes;
            bytes > PARKED_LOOK_BYTES
        });
        some.truncate(enough.map_or(some.len(), |last| last + 1));
        self.next = self.next.checked_add(some.len()).unwrap_or(0);
        let ready = self.remove(some);
        let streams = ready.iter().map(|call| call.turn.stream.clone()).collect();
        Looked { late, ready: ready.into_iter().map(|call| call.job).collect(), streams }
    }

    /// Everything.
    pub fn drain(&mut self) -> impl Iterator<Item = Job> {
        std::mem::take(self).calls.into_iter().map(|call| call.job)
    }

    /// Where the first call of each tool of each session is.
    fn firsts(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        let places = self.calls.iter().enumerate().filter(|(_, call)| seen.insert(&call.turn));
        places.map(|(place, _)| place).collect()
    }

    fn remove(&mut self, mut places: Vec<usize>) -> Vec<Call> {
        places.sort_unstable();
        let mut removed: Vec<Call> = places.into_iter().rev().map(|place| self.calls.remove(place)).collect();
        removed.reverse();
        self.bytes -= removed.iter().map(|call| call.bytes).sum::<usize>();
        removed
    }
}
