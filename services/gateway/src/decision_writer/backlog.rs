//! The outbox backlog in memory, so that a call need not query the database.

use std::sync::Mutex;
use std::time::Duration;

use evidence::Backlog;

use crate::limits::{OUTBOX_AGE, OUTBOX_BYTES, OUTBOX_RECORDS};

/// Limits of the outbox, at which calls are denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxLimits {
    /// Number of records.
    pub records: u64,
    /// Total size of their statements, in bytes.
    pub bytes: u64,
    /// Age of the oldest record.
    pub age: Duration,
}

impl Default for OutboxLimits {
    fn default() -> Self {
        Self { records: OUTBOX_RECORDS, bytes: OUTBOX_BYTES, age: OUTBOX_AGE }
    }
}

/// The limit of the outbox that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Backpressure {
    /// [`OutboxLimits::records`] is reached; holds the number of records.
    #[error("{0} records wait for the log")]
    Records(u64),
    /// [`OutboxLimits::bytes`] is reached; holds the number of bytes.
    #[error("{0} bytes wait for the log")]
    Bytes(u64),
    /// [`OutboxLimits::age`] is reached; holds the age in seconds.
    #[error("a record has waited for the log for {0} seconds")]
    Age(u64),
}

/// The backlog when the database was last queried, adjusted by later commits and deliveries.
#[derive(Debug, Default)]
pub struct BacklogGauge(Mutex<Backlog>);

impl BacklogGauge {
    /// Returns the current backlog.
    pub fn backlog(&self) -> Backlog {
        *self.lock()
    }

    /// Replaces the backlog by the database's.
    pub fn set(&self, backlog: Backlog) {
        *self.lock() = backlog;
    }

    /// Adds committed records. `at` is the time of the commit, in Unix seconds.
    pub fn add(&self, records: u64, bytes: u64, at: u64) {
        let mut backlog = self.lock();
        backlog.records += records;
        backlog.bytes += bytes;
        backlog.oldest_at.get_or_insert(at);
    }

    /// Subtracts delivered records.
    pub fn remove(&self, records: u64, bytes: u64) {
        let mut backlog = self.lock();
        backlog.records = backlog.records.saturating_sub(records);
        backlog.bytes = backlog.bytes.saturating_sub(bytes);
    }

    /// Returns the limit that is reached, if any. `now` is in Unix seconds.
    pub fn reached_limit(&self, limits: &OutboxLimits, now: u64) -> Option<Backpressure> {
        let backlog = self.backlog();
        let age = age(&backlog, now);
        if backlog.records >= limits.records {
            return Some(Backpressure::Records(backlog.records));
        }
        if backlog.bytes >= limits.bytes {
            return Some(Backpressure::Bytes(backlog.bytes));
        }
        (age >= limits.age.as_secs()).then_some(Backpressure::Age(age))
    }

    /// Returns the largest used fraction of the three limits; from 1.0 on, calls are denied.
    pub fn used_share(&self, limits: &OutboxLimits, now: u64) -> f64 {
        let backlog = self.backlog();
        let of = |part: u64, whole: u64| fraction(part, whole.max(1));
        of(backlog.records, limits.records)
            .max(of(backlog.bytes, limits.bytes))
            .max(of(age(&backlog, now), limits.age.as_secs()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Backlog> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn age(backlog: &Backlog, now: u64) -> u64 {
    backlog.oldest_at.map_or(0, |oldest| now.saturating_sub(oldest))
}

/// Divides to a thousandth, which is precise enough for an alarm.
fn fraction(part: u64, whole: u64) -> f64 {
    let thousandths = part.saturating_mul(1000) / whole;
    f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 1000.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LIMITS: OutboxLimits = OutboxLimits { records: 10, bytes: 1000, age: Duration::from_secs(60) };

    #[test]
    fn each_limit_by_itself_is_one_that_presses_back() {
        let gauge = BacklogGauge::default();
        gauge.add(9, 900, 100);
        assert_eq!(gauge.reached_limit(&LIMITS, 120), None);
        assert_eq!(gauge.reached_limit(&LIMITS, 160), Some(Backpressure::Age(60)));
        gauge.add(1, 10, 110);
        assert_eq!(gauge.reached_limit(&LIMITS, 120), Some(Backpressure::Records(10)));
        gauge.remove(5, 10);
        gauge.add(1, 500, 111);
        assert_eq!(gauge.reached_limit(&LIMITS, 120), Some(Backpressure::Bytes(1400)));
        gauge.set(Backlog::default());
        assert_eq!(gauge.reached_limit(&LIMITS, 10_000), None);
    }

    #[test]
    fn the_share_is_that_of_the_limit_that_is_nearest() {
        let gauge = BacklogGauge::default();
        gauge.add(1, 500, 100);
        assert!((gauge.used_share(&LIMITS, 100) - 0.5).abs() < 1e-9);
        assert!((gauge.used_share(&LIMITS, 154) - 0.9).abs() < 1e-9);
    }
}
