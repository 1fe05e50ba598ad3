//! Rate limit for reading rows: an average rate without bursts that make up for lost time.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The longest lag that is made up for; any further lag is forgotten.
const CREDIT: Duration = Duration::from_millis(100);

/// A rate limit on rows read.
#[derive(Debug)]
pub struct RowRate {
    rate: u32,
    due: Instant,
}

impl RowRate {
    /// A limit of `rate` rows per second; 0 is unlimited.
    pub fn of(rate: u32) -> Self {
        Self { rate, due: Instant::now() }
    }

    /// Waits for the time that `rows` take at the rate.
    pub async fn spent(&mut self, rows: u64) {
        match self.rate {
            0 => tokio::task::yield_now().await,
            _ => sleep_until(self.next(rows, Instant::now())).await,
        }
    }

    /// The time at which the rows after these are due.
    fn next(&mut self, rows: u64, now: Instant) -> Instant {
        let earliest = now.checked_sub(CREDIT).unwrap_or(self.due);
        self.due = self.due.max(earliest) + Duration::from_secs_f64(rows as f64 / f64::from(self.rate));
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_rows_at_a_hundred_a_second_take_ten_seconds() {
        let mut pace = RowRate::of(100);
        let begun = pace.due;
        let mut now = begun;
        for _ in 0..100 {
            now = pace.next(10, now);
        }
        let took = now - begun;
        assert!(took > Duration::from_millis(9_800) && took < Duration::from_millis(10_200), "{took:?}");
    }

    #[test]
    fn time_that_was_lost_is_not_made_up_for() {
        let mut pace = RowRate::of(100);
        let later = pace.due + Duration::from_secs(60);
        let mut now = later;
        for _ in 0..10 {
            now = pace.next(100, now);
        }
        assert!(now - later > Duration::from_secs(9));
    }
}
