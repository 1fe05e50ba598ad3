//! The last write that a daemon's storage did not take, for `/readyz`.
//!
//! A disk that fails or accepts no writes is not seen by reading, and free space says nothing about a quota. So a write
//! that finds it is remembered, for a while: if the daemon gets no requests because of it, no write could end the fault.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;

use crate::limits::FAILED_WRITE_REPORTED;

/// The fault that the newest write found, until one that began later succeeds.
#[derive(Debug, Default)]
pub struct FailedWrite(ArcSwapOption<FoundFault>);

#[derive(Debug)]
struct FoundFault {
    words: String,
    at: Instant,
}

impl FailedWrite {
    /// The fault, in words; `None` if a write has succeeded since, or if none was tried for [`FAILED_WRITE_REPORTED`].
    pub fn reported(&self) -> Option<String> {
        self.reported_at(Instant::now())
    }

    fn reported_at(&self, now: Instant) -> Option<String> {
        let is_recent = |found: &Arc<FoundFault>| now.duration_since(found.at) < FAILED_WRITE_REPORTED;
        self.0.load_full().filter(is_recent).map(|found| found.words.clone())
    }

    /// Notes that a write failed.
    pub fn failed(&self, words: impl Into<String>) {
        self.0.store(Some(Arc::new(FoundFault { words: words.into(), at: Instant::now() })));
    }

    /// Notes that a write succeeded, which began at `begun`. Outcomes arrive in any order, and the success of one that
    /// began before the fault says nothing about the storage since.
    pub fn succeeded(&self, begun: Instant) {
        let found = self.0.load();
        if found.as_ref().is_some_and(|found| found.at <= begun) {
            // A newer fault stays.
            self.0.compare_and_swap(&found, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_reported_until_a_write_succeeds() {
        let write = FailedWrite::default();
        assert_eq!(write.reported(), None);
        write.failed("full");
        assert_eq!(write.reported().as_deref(), Some("full"));
        write.succeeded(Instant::now());
        assert_eq!(write.reported(), None);
    }

    #[test]
    fn the_success_of_a_write_that_began_before_the_fault_does_not_end_it() {
        let write = FailedWrite::default();
        let begun = Instant::now();
        write.failed("full");
        write.succeeded(begun - FAILED_WRITE_REPORTED);
        assert!(write.reported().is_some());
    }

    #[test]
    fn a_fault_that_no_write_has_met_for_a_while_is_not_reported() {
        let write = FailedWrite::default();
        write.failed("full");
        assert!(write.reported_at(Instant::now() + FAILED_WRITE_REPORTED / 2).is_some());
        assert_eq!(write.reported_at(Instant::now() + FAILED_WRITE_REPORTED), None);
    }
}
