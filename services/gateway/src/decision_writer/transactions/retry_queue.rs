//! Items that must become durable and could not be committed: outcomes, closings, refunds.
//!
//! They are retried with exponential back-off and, while that fails, in ever smaller batches, so that one faulty item
//! does not keep the others from being committed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::work_item::WorkItem;
use crate::limits::{COMMIT_ITEMS, RETRY_FIRST_WAIT, RETRY_LONGEST_WAIT};

/// The queue of items to retry.
pub struct RetryQueue {
    items: VecDeque<WorkItem>,
    batch_size: usize,
    backoff: Duration,
    due_at: Instant,
}

impl RetryQueue {
    /// An empty queue.
    pub fn new() -> Self {
        let (items, due_at) = (VecDeque::new(), Instant::now());
        Self { items, batch_size: COMMIT_ITEMS, backoff: RETRY_FIRST_WAIT, due_at }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns when the next retry is due.
    pub fn due_at(&self) -> Instant {
        self.due_at
    }

    /// Adds an item.
    pub fn push(&mut self, item: WorkItem) {
        if self.items.is_empty() {
            self.due_at = Instant::now() + self.backoff;
        }
        self.items.push_back(item);
    }

    /// Takes the items for the next attempt, at most `most`.
    pub fn take_batch(&mut self, most: usize) -> Vec<WorkItem> {
        let count = self.batch_size.min(most).min(self.items.len());
        self.items.drain(..count).collect()
    }

    /// Resets the back-off after an attempt that is durable.
    pub fn succeeded(&mut self) {
        self.batch_size = (self.batch_size * 2).min(COMMIT_ITEMS);
        self.backoff = RETRY_FIRST_WAIT;
    }

    /// Backs off after an attempt with `tried` items, of which some failed.
    pub fn failed(&mut self, tried: usize) {
        self.batch_size = (tried / 2).max(1);
        self.due_at = Instant::now() + self.backoff;
        self.backoff = (self.backoff * 2).min(RETRY_LONGEST_WAIT);
    }
}
