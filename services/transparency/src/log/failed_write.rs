//! The last registration that the database could not store, for `/readyz`.

use std::time::Instant;

use serving::failed_write::FailedWrite;
use store::StoreError;

use crate::log::registration_outcome::{RegisterError, Registration};

/// Learns from the outcome of a registration that began at `begun`.
pub(super) fn learn(write: &FailedWrite, begun: Instant, outcome: &Result<Registration, RegisterError>) {
    match outcome {
        Err(RegisterError::Store(error)) if matches!(**error, StoreError::Storage(..)) => {
            write.failed(format!("a registration could not be stored: {error}"));
        }
        // A duplicate is answered without a write.
        Ok(registration) if !registration.is_duplicate => write.succeeded(begun),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use store::StorageFault;

    use super::*;
    use crate::log::registration_outcome::Registered;

    fn accepted(is_duplicate: bool) -> Result<Registration, RegisterError> {
        Ok(Registration { registered: Registered::Later, is_duplicate })
    }

    #[test]
    fn a_fault_of_the_storage_is_reported_until_a_registration_succeeds() {
        let write = FailedWrite::default();
        let learn = |outcome| learn(&write, Instant::now(), &outcome);
        learn(Err(RegisterError::Frozen));
        learn(Err(StoreError::Unavailable("away".into()).into()));
        assert_eq!(write.reported(), None);
        learn(Err(StoreError::Storage(StorageFault::ReadOnly, "no writes".into()).into()));
        let reported = "a registration could not be stored: the storage is read-only: no writes";
        assert_eq!(write.reported().as_deref(), Some(reported));
        learn(accepted(true));
        assert!(write.reported().is_some(), "a duplicate writes nothing");
        learn(accepted(false));
        assert_eq!(write.reported(), None);
    }
}
