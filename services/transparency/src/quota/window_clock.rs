//! The clock by which windows of quotas begin: that of the database server, so that all processes of a log name the same window
//! and remove the same counters, whatever their own clocks show.
//!
//! Between two readings time goes on by the steady clock of this process, so setting a wall clock moves no window. A database on this
//! machine has no clock of its own: then the wall clock counts as it was when the process first read it.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use sequencer::{Clock, Now, SystemClock};
use store::{ServerChecks, StoreError};
use tokio::time::timeout;

use crate::limits::QUOTA_TIME;

/// The clock of windows, with its last reading.
#[derive(Debug, Default)]
pub struct WindowClock {
    last: Mutex<Option<Now>>,
}

impl WindowClock {
    /// Time since 1970 by the last reading; `None` before the first one.
    pub fn time(&self) -> Option<Duration> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.map(|last| time_since(last, SystemClock.now()))
    }

    /// Time since 1970 by a new reading, which is right to [`QUOTA_TIME`].
    pub async fn read(&self, database: &dyn ServerChecks) -> Result<Duration, StoreError> {
        // Taken before the query, so that the clock is ahead by the time of the query rather than behind.
        let asked = SystemClock.now();
        let late = |_| Err(StoreError::Unavailable("the clock was not answered in time".into()));
        let reading = match timeout(QUOTA_TIME, database.clock()).await.unwrap_or_else(late)? {
            Some(wall) => Now { wall, ..asked },
            None => first_local_time(),
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading);
        Ok(time_since(reading, SystemClock.now()))
    }
}

fn first_local_time() -> Now {
    static FIRST: LazyLock<Now> = LazyLock::new(|| SystemClock.now());
    *FIRST
}

fn time_since(reading: Now, now: Now) -> Duration {
    reading.wall + now.steady.saturating_sub(reading.steady)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_moves_no_window() {
        let at = |wall, steady| Now { wall: Duration::from_secs(wall), steady: Duration::from_secs(steady) };
        for wall in [0, 1_000, 1_010, 90_000] {
            assert_eq!(time_since(at(1_000, 5), at(wall, 15)), Duration::from_secs(1_010), "{wall}");
        }
    }
}
