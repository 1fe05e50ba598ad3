//! What is owed and could not be committed: outcomes, ends, refunds.
//!
//! It is tried again by itself, in ever smaller parts and at ever longer intervals while that fails, so that whatever is wrong
//! with some of it does not keep anything else from being committed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::desk::writer::Job;
use crate::limits::{COMMIT_JOBS, OWED_AGAIN_AFTER, OWED_LONGEST_WAIT};

/// What is owed.
pub struct Owed {
    jobs: VecDeque<Job>,
    at_once: usize,
    wait: Duration,
    again: Instant,
}

impl Owed {
    /// Nothing.
    pub fn nothing() -> Self {
        Self { jobs: VecDeque::new(), at_once: COMMIT_JOBS, wait: OWED_AGAIN_AFTER, again: Instant::now() }
    }

    /// How much.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// When it is tried again.
    pub fn again(&self) -> Instant {
        self.again
    }

    /// More.
    pub fn put(&mut self, job: Job) {
        if self.jobs.is_empty() {
            self.again = Instant::now() + self.wait;
        }
        self.jobs.push_back(job);
    }

    /// Some of it, to be tried: not more than `most`.
    pub fn some(&mut self, most: usize) -> Vec<Job> {
        let count = self.at_once.min(most).min(self.jobs.len());
        self.jobs.drain(..count).collect()
    }

    /// What was tried is durable.
    pub fn went_well(&mut self) {
        (self.at_once, self.wait) = ((self.at_once * 2).min(COMMIT_JOBS), OWED_AGAIN_AFTER);
    }

    /// That many were tried, and some of them came back.
    pub fn came_back(&mut self, tried: usize) {
        self.at_once = (tried / 2).max(1);
        self.again = Instant::now() + self.wait;
        self.wait = (self.wait * 2).min(OWED_LONGEST_WAIT);
    }
}
