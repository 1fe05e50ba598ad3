//! How much waits for the log, without asking the database at every call.

use std::sync::Mutex;
use std::time::Duration;

use evidence::Backlog;

use crate::limits::{OUTBOX_AGE, OUTBOX_BYTES, OUTBOX_RECORDS};

/// What may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxLimits {
    /// Records.
    pub records: u64,
    /// Bytes of their statements.
    pub bytes: u64,
    /// How long the oldest one may have waited.
    pub age: Duration,
}

impl Default for OutboxLimits {
    fn default() -> Self {
        Self { records: OUTBOX_RECORDS, bytes: OUTBOX_BYTES, age: OUTBOX_AGE }
    }
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Backpressure {
    /// Too many records.
    #[error("{0} records wait for the log")]
    Records(u64),
    /// Too many bytes.
    #[error("{0} bytes wait for the log")]
    Bytes(u64),
    /// Too old.
    #[error("a record has waited for the log for {0} seconds")]
    Age(u64),
}

/// What waited when the database was last asked, and what was committed since.
#[derive(Debug, Default)]
pub struct Gauge(Mutex<Backlog>);

impl Gauge {
    /// What waits.
    pub fn backlog(&self) -> Backlog {
        *self.lock()
    }

    /// What the database says.
    pub fn set(&self, backlog: Backlog) {
        *self.lock() = backlog;
    }

    /// Records were committed: until the database is asked again, they wait.
    pub fn add(&self, records: u64, bytes: u64, at: u64) {
        let mut backlog = self.lock();
        backlog.records += records;
        backlog.bytes += bytes;
        backlog.oldest_at.get_or_insert(at);
    }

    /// Records were delivered.
    pub fn remove(&self, records: u64, bytes: u64) {
        let mut backlog = self.lock();
        backlog.records = backlog.records.saturating_sub(records);
        backlog.bytes = backlog.bytes.saturating_sub(bytes);
    }

    /// The limit that is reached, if one is. `now` in Unix seconds.
    pub fn over(&self, limits: &OutboxLimits, now: u64) -> Option<Backpressure> {
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

    /// The part of its limits that the backlog takes, the largest of the three; 1 and more is too much.
    pub fn share(&self, limits: &OutboxLimits, now: u64) -> f64 {
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

/// To a thousandth, which is enough to raise an alarm by.
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
        let gauge = Gauge::default();
        gauge.add(9, 900, 100);
        assert_eq!(gauge.over(&LIMITS, 120), None);
        assert_eq!(gauge.over(&LIMITS, 160), Some(Backpressure::Age(60)));
        gauge.add(1, 10, 110);
        assert_eq!(gauge.over(&LIMITS, 120), Some(Backpressure::Records(10)));
        gauge.remove(5, 10);
        gauge.add(1, 500, 111);
        assert_eq!(gauge.over(&LIMITS, 120), Some(Backpressure::Bytes(1400)));
        gauge.set(Backlog::default());
        assert_eq!(gauge.over(&LIMITS, 10_000), None);
    }

    #[test]
    fn the_share_is_that_of_the_limit_that_is_nearest() {
        let gauge = Gauge::default();
        gauge.add(1, 500, 100);
        assert!((gauge.share(&LIMITS, 100) - 0.5).abs() < 1e-9);
        assert!((gauge.share(&LIMITS, 154) - 0.9).abs() < 1e-9);
    }
}
