//! Bounds on waiting submissions: their number and their total size in bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counter of waiting submissions, bounded by [`Limits`](crate::Limits). Clones count together.
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

/// Reserved room in the queue, released when dropped.
#[derive(Debug)]
pub(crate) struct SubmissionSlot {
    used: Arc<Used>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(entries: usize, bytes: usize) -> Self {
        Self { used: Arc::default(), entries, bytes }
    }

    /// Reserves room for one submission of so many bytes; `None` if it does not fit.
    pub(crate) fn take(&self, bytes: usize) -> Option<SubmissionSlot> {
        let place = SubmissionSlot { used: Arc::clone(&self.used), bytes };
        let entries = self.used.entries.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.used.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // If it does not fit, dropping `place` releases the room again.
        (entries <= self.entries && total <= self.bytes).then_some(place)
    }

    /// Number of waiting submissions, and their size in bytes.
    pub(crate) fn used(&self) -> (usize, usize) {
        (self.used.entries.load(Ordering::Relaxed), self.used.bytes.load(Ordering::Relaxed))
    }
}

impl Drop for SubmissionSlot {
    fn drop(&mut self) {
        self.used.entries.fetch_sub(1, Ordering::Relaxed);
        self.used.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
