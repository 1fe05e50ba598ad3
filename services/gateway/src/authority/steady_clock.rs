//! The clock of AgentROA, which does not run back while the gateway runs.
//!
//! If the system's clock is set back, an envelope or a proof that has ended would be valid again, and the registry would
//! grow no older. So the time goes on from the latest time that was read, at the rate of the monotonic clock.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use super::TimeSource;
use crate::limits::CLOCK_SET_BACK;

/// A clock that never returns an earlier time than before.
pub struct SteadyClock {
    system: TimeSource,
    latest: Mutex<LatestTime>,
}

/// The latest time that was read.
struct LatestTime {
    time: Timestamp,
    at: Instant,
    /// `true` while the system's clock is behind it.
    is_set_back: bool,
}

impl SteadyClock {
    /// Creates a clock that follows the system's clock forward.
    #[must_use]
    pub fn new(system: TimeSource) -> Self {
        let latest = LatestTime { time: system(), at: Instant::now(), is_set_back: false };
        Self { system, latest: Mutex::new(latest) }
    }

    /// Returns the time, with millisecond resolution.
    pub fn now(&self) -> Timestamp {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let (system, at) = ((self.system)(), Instant::now());
        let elapsed = i64::try_from(at.duration_since(latest.at).as_millis()).unwrap_or(i64::MAX);
        let steady = latest.time.checked_add(SignedDuration::from_millis(elapsed)).unwrap_or(Timestamp::MAX);
        latest.note(system.duration_until(steady) > CLOCK_SET_BACK);
        // The elapsed time counts from the same instant until a millisecond has passed.
        if system > steady || elapsed > 0 {
            (latest.time, latest.at) = (system.max(steady), at);
        }
        latest.time
    }
}

impl LatestTime {
    /// Logs that the system's clock was set back, once.
    fn note(&mut self, is_set_back: bool) {
        if is_set_back && !self.is_set_back {
            tracing::warn!(
                time = %self.time,
                "the clock was set back: AgentROA continues with its own time until the clock has caught up, or until a restart"
            );
        }
        self.is_set_back = is_set_back;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn the_time_goes_on_from_the_latest_one_when_the_clock_is_set_back() {
        let seconds = Arc::new(AtomicI64::new(1_800_000_000));
        let read = seconds.clone();
        let clock =
            SteadyClock::new(Arc::new(move || Timestamp::from_second(read.load(Ordering::Relaxed)).unwrap()));
        assert_eq!(clock.now().as_second(), 1_800_000_000);
        seconds.store(1_800_001_000, Ordering::Relaxed);
        let latest = clock.now();
        assert_eq!(latest.as_second(), 1_800_001_000);
        seconds.store(1_700_000_000, Ordering::Relaxed);
        let later = clock.now();
        assert!(later >= latest && later.as_second() < 1_800_001_100, "{later}");
        seconds.store(1_900_000_000, Ordering::Relaxed);
        assert_eq!(clock.now().as_second(), 1_900_000_000);
    }
}
