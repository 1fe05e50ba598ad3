//! How long to wait before asking again (SCRAPI 5.1).
//!
//! A `Retry-After` is a minimum. Without one the wait doubles, with jitter so that clients that
//! failed together do not come back together; waits and attempts are capped.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// The first wait when the service names none.
const FIRST: Duration = Duration::from_millis(100);
/// No wait of our own choosing is longer.
const LONGEST: Duration = Duration::from_secs(10);
/// A service that asks for more than this is taken to be down.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// The state of one operation's retries.
#[derive(Debug)]
pub struct Backoff {
    attempt: u32,
    left: Duration,
}

impl Backoff {
    /// Retries within this much waiting altogether.
    pub fn within(patience: Duration) -> Self {
        Self { attempt: 0, left: patience }
    }

    /// The next wait, or `None` when patience is used up.
    pub fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let own = jittered(FIRST.saturating_mul(1 << self.attempt.min(10)).min(LONGEST));
        let wait = asked.map_or(own, |asked| asked.max(FIRST));
        self.attempt += 1;
        if wait > self.left || wait > LONGEST_ASKED {
            return None;
        }
        self.left -= wait;
        Some(wait)
    }
}

/// The wait that an answer asks for. An HTTP date is read as "try again soon": our clock may be
/// wrong, and the backoff's own wait serves as well.
pub fn asked(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Between half and all of `wait`.
fn jittered(wait: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    wait / 2 + wait.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_the_service_asks_for_is_a_minimum() {
        let mut backoff = Backoff::within(Duration::from_secs(60));
        assert_eq!(backoff.next(Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
    }

    #[test]
    fn without_a_word_from_the_service_waits_grow_and_end() {
        let mut backoff = Backoff::within(Duration::from_secs(5));
        let waits: Vec<_> = std::iter::from_fn(|| backoff.next(None)).collect();
        assert!(waits.len() >= 4, "{waits:?}");
        assert!(waits.iter().sum::<Duration>() <= Duration::from_secs(5));
        assert!(waits[0] >= FIRST / 2 && waits[0] <= FIRST);
    }

    #[test]
    fn a_service_that_asks_for_an_hour_is_not_waited_for() {
        assert_eq!(Backoff::within(Duration::MAX).next(Some(Duration::from_secs(3600))), None);
    }
}
