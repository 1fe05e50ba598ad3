//! A place in the queue of decisions: as many as there are, and as many bytes as they may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Desk;
use super::error::DeskError;
use crate::limits::{QUEUED_BYTES, QUEUED_DECISIONS};

/// What queues.
#[derive(Debug, Default)]
pub struct Queue {
    decisions: AtomicUsize,
    bytes: AtomicUsize,
}

/// A place, held until the decision is made and whoever asked is gone. A call that waits for another one's cost (V-12) gives it
/// up meanwhile: such calls have a bound of their own, and must not take the places of everybody.
pub struct Place {
    desk: Desk,
    bytes: usize,
    taken: AtomicBool,
    waited: AtomicBool,
}

impl Place {
    /// Takes one, for something of that many bytes.
    ///
    /// # Errors
    /// If there is none left.
    pub fn take(desk: &Desk, bytes: usize) -> Result<Arc<Self>, DeskError> {
        let place = Self { desk: desk.clone(), bytes, taken: false.into(), waited: false.into() };
        place.go_on();
        let Queue { decisions, bytes } = &desk.inner.queue;
        let fits = decisions.load(Ordering::Relaxed) <= QUEUED_DECISIONS
            && bytes.load(Ordering::Relaxed) <= QUEUED_BYTES;
        fits.then(|| Arc::new(place)).ok_or(DeskError::Busy)
    }

    /// It is decided now.
    pub fn go_on(&self) {
        if !self.taken.swap(true, Ordering::Relaxed) {
            let Queue { decisions, bytes } = &self.desk.inner.queue;
            decisions.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }

    /// It waits for another call's cost.
    pub fn wait(&self) {
        self.waited.store(true, Ordering::Relaxed);
        self.give_up();
    }

    /// Whether it waited since this was last asked.
    pub fn has_waited(&self) -> bool {
        self.waited.swap(false, Ordering::Relaxed)
    }

    fn give_up(&self) {
        if self.taken.swap(false, Ordering::Relaxed) {
            let Queue { decisions, bytes } = &self.desk.inner.queue;
            decisions.fetch_sub(1, Ordering::Relaxed);
            bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.give_up();
    }
}
