//! Observer of the store: the metric of its operations, and the last write that failed, for `/readyz`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use operation_times::{OperationObserver, StoreOperation};
use serving::failed_write::FailedWrite;
use verification_store::{StoreError, WRITE};

/// Passes the durations on, and notes which writes the storage did not take.
#[derive(Debug)]
pub struct StoreObserver {
    /// The metric.
    pub durations: Arc<dyn OperationObserver>,
    /// The last write that failed.
    pub failed_write: Arc<FailedWrite>,
}

impl OperationObserver for StoreObserver {
    fn ended(&self, operation: StoreOperation, error_type: Option<&'static str>, took: Duration) {
        if operation == WRITE {
            match error_type.map(StoreError::temporary_fault) {
                None => self.failed_write.succeeded(began(took)),
                Some(Some(fault)) => {
                    self.failed_write.failed(format!("the database took no write: {fault}"));
                }
                // An error of another class is about the data.
                Some(None) => {}
            }
        }
        self.durations.ended(operation, error_type, took);
    }
}

fn began(took: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(took).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use serving::database_metrics::{DatabaseMetrics, DatabaseSystem};
    use serving::metrics::MetricRegistry;

    use super::*;

    #[test]
    fn a_write_that_the_storage_does_not_take_is_reported_until_one_succeeds() {
        let durations = DatabaseMetrics::new(&MetricRegistry::default()).unwrap();
        let failed_write = Arc::new(FailedWrite::default());
        let observer = StoreObserver {
            durations: durations.observer(DatabaseSystem::Sqlite),
            failed_write: failed_write.clone(),
        };
        let read = StoreOperation { number: WRITE.number + 1, name: "read" };
        observer.ended(WRITE, Some("refused"), Duration::ZERO);
        observer.ended(read, Some("unavailable"), Duration::ZERO);
        assert_eq!(failed_write.reported(), None);
        for fault in ["full", "read_only", "unavailable"] {
            observer.ended(WRITE, Some(fault), Duration::ZERO);
            observer.ended(read, None, Duration::ZERO);
            assert!(failed_write.reported().is_some(), "{fault}");
            observer.ended(WRITE, None, Duration::ZERO);
            assert_eq!(failed_write.reported(), None, "{fault}");
        }
    }
}
