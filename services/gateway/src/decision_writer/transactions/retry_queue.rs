//! Owed jobs that could not be committed: outcomes, closings, refunds.
//!
//! They are retried with exponential back-off and, while that fails, in ever smaller batches, so that one faulty job
//! does not keep the others from being committed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::decision_writer::transactions::Job;
use crate::limits::{COMMIT_JOBS, OWED_AGAIN_AFTER, OWED_LONGEST_WAIT};

/// The queue of owed jobs.
pub struct RetryQueue {
    jobs: VecDeque<Job>,
    at_once: usize,
    wait: Duration,
    again: Instant,
}

impl RetryQueue {
    /// An empty queue.
    pub fn nothing() -> Self {
        Self { jobs: VecDeque::new(), at_once: COMMIT_JOBS, wait: OWED_AGAIN_AFTER, again: Instant::now() }
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns when the next retry is due.
    pub fn again(&self) -> Instant {
        self.again
    }

    /// Adds a job.
    pub fn put(&mut self, job: Job) {
        if self.jobs.is_empty() {
            self.again = Instant::now() + self.wait;
        }
        self.jobs.push_back(job);
    }

    /// Takes the jobs for the next attempt, at most `most`.
    pub fn some(&mut self, most: usize) -> Vec<Job> {
        let count = self.at_once.min(most).min(self.jobs.len());
        self.jobs.drain(..count).collect()
    }

    /// Resets the back-off after an attempt that is durable.
    pub fn succeeded(&mut self) {
        (self.at_once, self.wait) = ((self.at_once * 2).min(COMMIT_JOBS), OWED_AGAIN_AFTER);
    }

    /// Backs off after an attempt with `tried` jobs, of which some failed.
    pub fn failed_again(&mut self, tried: usize) {
        self.at_once = (tried / 2).max(1);
        self.again = Instant::now() + self.wait;
        self.wait = (self.wait * 2).min(OWED_LONGEST_WAIT);
    }
}
