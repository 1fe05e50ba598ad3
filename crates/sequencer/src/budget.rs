//! The bound on what may wait: so many submissions, and so many bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what waits. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    used: Arc<Used>,
    entries: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Used {
    entries: AtomicUsize,
    bytes: AtomicUsize,
}

/// A place in the queue, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    used: Arc<Used>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(entries: usize, bytes: usize) -> Self {
        Self { used: Arc::default(), entries, bytes }
    }

    /// A place for a submission of so many bytes; `None` when there is none.
    pub(crate) fn take(&self, bytes: usize) -> Option<Place> {
        let place = Place { used: Arc::clone(&self.used), bytes };
        let entries = self.used.entries.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.used.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Dropping the place gives back what does not fit.
        (entries <= self.entries && total <= self.bytes).then_some(place)
    }

    /// How much waits: submissions, and their bytes.
    pub(crate) fn used(&self) -> (usize, usize) {
        (self.used.entries.load(Ordering::Relaxed), self.used.bytes.load(Ordering::Relaxed))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.used.entries.fetch_sub(1, Ordering::Relaxed);
        self.used.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
