//! The clock as a parameter: decisions and records take their time from a [`Clock`], so that tests can set it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use crate::limits::DUE_STEPS;

/// A clock with millisecond resolution. Clones share the source of the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        Self::of(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// A clock that reads the time from a function, in milliseconds since the Unix epoch.
    pub fn of(milliseconds: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(milliseconds))
    }

    /// Returns the time in milliseconds since the Unix epoch.
    pub fn milliseconds(&self) -> u64 {
        (self.0)()
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        timestamp(self.milliseconds())
    }

    /// Returns the time in whole seconds since the Unix epoch.
    pub fn seconds(&self) -> u64 {
        self.milliseconds() / 1000
    }
}

/// Converts milliseconds since the Unix epoch to a timestamp; a value out of range becomes the maximum.
pub fn timestamp(milliseconds: u64) -> Timestamp {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
}

/// Returns when a stream is due, in Unix seconds, that is idle from `now` on: after this time, or up to a [`DUE_STEPS`]th of
/// it later. The result is the same for a while, so that most changes of a busy stream need not write the index of due
/// times.
pub fn due_after(now: u64, idle: Duration) -> u64 {
    let step = (idle.as_secs() / DUE_STEPS).max(1);
    now.saturating_add(idle.as_secs()).div_ceil(step).saturating_mul(step)
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({})", self.milliseconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_stream_is_due_no_earlier_and_little_later_and_a_busy_one_is_seldom_moved() {
        let day = 24 * 3600;
        let due = |now| due_after(now, Duration::from_secs(day));
        let mut times: Vec<u64> = (1_000_000..1_003_600).map(due).collect();
        for (now, due) in (1_000_000..).zip(&times) {
            assert!((now + day..=now + day + day / DUE_STEPS).contains(due), "{now}: {due}");
        }
        times.dedup();
        assert!(times.len() <= 43, "{} in an hour", times.len());
    }

    #[test]
    fn a_short_time_is_exact() {
        for (now, idle) in [(0_u64, 0), (7, 1), (1_000_003, 600), (5, u64::MAX)] {
            let exact = now.saturating_add(idle);
            let due = due_after(now, Duration::from_secs(idle));
            assert!(due == exact || exact == u64::MAX, "{now} + {idle}: {due}");
        }
    }
}
