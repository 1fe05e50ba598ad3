//! The last registration that the database could not store, for `/readyz`.
//!
//! A disk that fails or accepts no writes is not seen by reading, and free space says nothing about a quota. So a
//! registration that finds it is remembered.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use store::StoreError;

use crate::limits::FAILED_WRITE_REPORTED;
use crate::log::registration_outcome::{RegisterError, Registration};

/// The fault that the newest registration found, until one that began later succeeds.
#[derive(Debug, Default)]
pub struct FailedWrite(ArcSwapOption<FoundFault>);

#[derive(Debug)]
struct FoundFault {
    error: Arc<StoreError>,
    at: Instant,
}

impl FailedWrite {
    /// The fault, in words; `None` if a registration has succeeded since, or if none was tried for [`FAILED_WRITE_REPORTED`].
    pub fn reported(&self) -> Option<String> {
        self.reported_at(Instant::now())
    }

    fn reported_at(&self, now: Instant) -> Option<String> {
        let is_recent = |found: &Arc<FoundFault>| now.duration_since(found.at) < FAILED_WRITE_REPORTED;
        let found = self.0.load_full().filter(is_recent)?;
        Some(format!("a registration could not be stored: {}", found.error))
    }

    /// Learns from the outcome of a registration that began at `begun`. Outcomes arrive in any order, and the success of
    /// one that began before the fault says nothing about the storage since.
    pub(super) fn learn(&self, begun: Instant, outcome: &Result<Registration, RegisterError>) {
        match outcome {
            Err(RegisterError::Store(error)) if matches!(**error, StoreError::Storage(..)) => {
                self.0.store(Some(Arc::new(FoundFault { error: error.clone(), at: Instant::now() })));
            }
            // A duplicate is answered without a write.
            Ok(registration) if !registration.is_duplicate => self.forget_before(begun),
            _ => {}
        }
    }

    fn forget_before(&self, begun: Instant) {
        let found = self.0.load();
        if found.as_ref().is_some_and(|found| found.at <= begun) {
            // A newer fault stays.
            self.0.compare_and_swap(&found, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use store::StorageFault;

    use super::*;
    use crate::log::registration_outcome::Registered;

    fn failed() -> Result<Registration, RegisterError> {
        Err(StoreError::Storage(StorageFault::ReadOnly, "no writes".into()).into())
    }

    fn accepted(is_duplicate: bool) -> Result<Registration, RegisterError> {
        Ok(Registration { registered: Registered::Later, is_duplicate })
    }

    #[test]
    fn a_fault_of_the_storage_is_reported_until_a_registration_succeeds() {
        let write = FailedWrite::default();
        let learn = |outcome| write.learn(Instant::now(), &outcome);
        learn(Err(RegisterError::Frozen));
        learn(Err(StoreError::Unavailable("away".into()).into()));
        assert_eq!(write.reported(), None);
        learn(failed());
        let reported = "a registration could not be stored: the storage is read-only: no writes";
        assert_eq!(write.reported().as_deref(), Some(reported));
        learn(accepted(true));
        assert!(write.reported().is_some(), "a duplicate writes nothing");
        learn(accepted(false));
        assert_eq!(write.reported(), None);
    }

    #[test]
    fn the_success_of_a_registration_that_began_before_the_fault_does_not_end_it() {
        let write = FailedWrite::default();
        let begun = Instant::now() - FAILED_WRITE_REPORTED;
        write.learn(begun, &failed());
        write.learn(begun, &accepted(false));
        assert!(write.reported().is_some());
    }

    #[test]
    fn a_fault_that_no_registration_has_met_for_a_while_is_not_reported() {
        let write = FailedWrite::default();
        write.learn(Instant::now(), &failed());
        assert!(write.reported_at(Instant::now() + FAILED_WRITE_REPORTED / 2).is_some());
        assert_eq!(write.reported_at(Instant::now() + FAILED_WRITE_REPORTED), None);
    }
}
