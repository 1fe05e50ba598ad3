//! Slots in the queue of decisions, bounded by their number and by their bytes in total.
//!
//! The request's task takes a slot before it submits a decision, and holds it until it has the answer: so a caller is
//! refused while the writer task is behind, and the queue in front of that task needs no bound of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::time::Instant;

use super::DecisionWriter;
use super::error::WriterError;
use super::transactions::EarlyRead;
use crate::limits::{QUEUED_BYTES, QUEUED_DECISIONS};

/// The number of the occupied slots, and of their bytes.
#[derive(Debug, Default)]
pub struct OccupiedSlots {
    decisions: AtomicUsize,
    bytes: AtomicUsize,
}

/// A queue slot, held until the decision is made and the caller has gone. A call that waits for the cost of another one
/// (V-12) frees it meanwhile: such calls have a bound of their own, and must not occupy the slots of other callers.
pub struct QueueSlot {
    writer: DecisionWriter,
    bytes: usize,
    decide_by: Instant,
    is_occupied: AtomicBool,
    has_waited: AtomicBool,
}

/// A call in the queue, with what was read for its decision.
pub struct QueuedCall {
    /// The slot of the call.
    pub slot: Arc<QueueSlot>,
    /// The streams and claims that the decision needs.
    pub early: EarlyRead,
}

impl QueueSlot {
    /// Takes a slot for a message of this size.
    ///
    /// # Errors
    /// [`WriterError::Busy`] if more than [`QUEUED_DECISIONS`] or [`QUEUED_BYTES`] would be queued.
    pub fn take(writer: &DecisionWriter, bytes: usize) -> Result<Arc<Self>, WriterError> {
        let decide_by = Instant::now() + writer.inner.context.settings.decide_time;
        let (is_occupied, has_waited) = (false.into(), false.into());
        let slot = Self { writer: writer.clone(), bytes, decide_by, is_occupied, has_waited };
        slot.occupy();
        let OccupiedSlots { decisions, bytes } = &writer.inner.slots;
        let fits = decisions.load(Ordering::Relaxed) <= QUEUED_DECISIONS
            && bytes.load(Ordering::Relaxed) <= QUEUED_BYTES;
        fits.then(|| Arc::new(slot)).ok_or(WriterError::Busy)
    }

    /// Returns when the decision must be made: `decide_time` after the slot was taken.
    pub fn decide_by(&self) -> Instant {
        self.decide_by
    }

    /// Occupies the slot, unless it is occupied: the call is being decided.
    pub fn occupy(&self) {
        if !self.is_occupied.swap(true, Ordering::Relaxed) {
            let OccupiedSlots { decisions, bytes } = &self.writer.inner.slots;
            decisions.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }

    /// Frees the slot while the call waits for the cost of another one.
    pub fn free_while_waiting(&self) {
        self.has_waited.store(true, Ordering::Relaxed);
        self.free();
    }

    /// Returns whether the call has waited since the last query.
    pub fn take_has_waited(&self) -> bool {
        self.has_waited.swap(false, Ordering::Relaxed)
    }

    fn free(&self) {
        if self.is_occupied.swap(false, Ordering::Relaxed) {
            let OccupiedSlots { decisions, bytes } = &self.writer.inner.slots;
            decisions.fetch_sub(1, Ordering::Relaxed);
            bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.free();
    }
}
