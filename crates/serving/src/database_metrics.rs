//! How long the operations of a database take, by the database conventions of OpenTelemetry in Prometheus's spelling.
//!
//! The labels are the kind of database, the name of the operation and the class of its error, all of fixed lists.
//!
//! Not here: the wrappers of the stores that report the durations (`operation-times`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use operation_times::{OperationObserver, StoreOperation};
use prometheus::{Error, Histogram, HistogramVec};

use crate::limits::DATABASE_OPERATIONS;
use crate::metrics::MetricRegistry;

/// Upper bounds of the buckets in seconds: those of the convention.
const SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseSystem {
    /// A PostgreSQL server.
    PostgreSql,
    /// A SQLite file.
    Sqlite,
}

impl DatabaseSystem {
    /// Returns the convention's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PostgreSql => "postgresql",
            Self::Sqlite => "sqlite",
        }
    }
}

/// The metric of a daemon's databases.
#[derive(Clone, Debug)]
pub struct DatabaseMetrics(HistogramVec);

impl DatabaseMetrics {
    /// Registers the metric.
    ///
    /// # Errors
    /// If the daemon has a metric of the same name.
    pub fn new(registry: &MetricRegistry) -> Result<Self, Error> {
        Ok(Self(registry.histograms(
            "db_client_operation_duration_seconds",
            "Time of an operation of the database",
            SECONDS,
            &["db_system_name", "db_operation_name", "error_type"],
        )?))
    }

    /// Returns the observer of a database.
    pub fn observer(&self, system: DatabaseSystem) -> Arc<dyn OperationObserver> {
        Arc::new(DatabaseObserver {
            system,
            durations: self.0.clone(),
            succeeded: [const { OnceLock::new() }; DATABASE_OPERATIONS],
        })
    }
}

/// Observer of the operations of one database.
#[derive(Debug)]
struct DatabaseObserver {
    system: DatabaseSystem,
    durations: HistogramVec,
    /// Histograms of the operations that succeeded, by the number of the operation. A series exists from its first
    /// observation on.
    succeeded: [OnceLock<Histogram>; DATABASE_OPERATIONS],
}

impl DatabaseObserver {
    fn histogram(&self, operation: StoreOperation, error_type: &str) -> Histogram {
        self.durations.with_label_values(&[self.system.name(), operation.name, error_type])
    }
}

impl OperationObserver for DatabaseObserver {
    fn ended(&self, operation: StoreOperation, error_type: Option<&'static str>, took: Duration) {
        let seconds = took.as_secs_f64();
        match (error_type, self.succeeded.get(operation.number)) {
            (None, Some(known)) => known.get_or_init(|| self.histogram(operation, "")).observe(seconds),
            (error_type, _) => self.histogram(operation, error_type.unwrap_or_default()).observe(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_series_by_database_name_and_class_of_error() {
        let registry = MetricRegistry::default();
        let observer = DatabaseMetrics::new(&registry).unwrap().observer(DatabaseSystem::Sqlite);
        let commit = StoreOperation { number: 3, name: "commit" };
        let beyond = StoreOperation { number: DATABASE_OPERATIONS, name: "find" };
        observer.ended(commit, None, Duration::from_millis(2));
        observer.ended(commit, None, Duration::from_secs(20));
        observer.ended(commit, Some("full"), Duration::from_micros(1));
        observer.ended(beyond, None, Duration::ZERO);
        let text = registry.text().unwrap();
        let series = |series: &str, operation: &str, error: &str, bound: &str, count: u64| {
            let labels = format!(
                "db_operation_name=\"{operation}\",db_system_name=\"sqlite\",error_type=\"{error}\"{bound}"
            );
            format!("db_client_operation_duration_seconds_{series}{{{labels}}} {count}\n")
        };
        for line in [
            series("bucket", "commit", "", ",le=\"0.001\"", 0),
            series("bucket", "commit", "", ",le=\"10\"", 1),
            series("count", "commit", "", "", 2),
            series("count", "commit", "full", "", 1),
            series("count", "find", "", "", 1),
        ] {
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
