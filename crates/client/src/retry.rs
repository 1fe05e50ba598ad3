//! Retries with back-off (SCRAPI 5.1).
//!
//! `Retry-After` is a minimum. Without it the wait doubles each time, with jitter, so that clients that failed together
//! do not retry together. The single wait is bounded, and so is the total time with the exchanges between the waits: a
//! service that answers slowly uses the patience up as well.

use std::time::{Duration, Instant, SystemTime};

use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};

/// First wait without `Retry-After`.
const FIRST: Duration = Duration::from_millis(100);
/// Maximum wait without `Retry-After`.
const LONGEST: Duration = Duration::from_secs(10);
/// Maximum accepted `Retry-After`; a service that asks for more counts as down.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// State of one operation's retries.
#[derive(Debug)]
pub struct Backoff {
    attempt: u32,
    patience: Duration,
    waited: Duration,
    begun: Instant,
}

impl Backoff {
    /// Creates a back-off that ends `patience` from now.
    pub fn within(patience: Duration) -> Self {
        Self { attempt: 0, patience, waited: Duration::ZERO, begun: Instant::now() }
    }

    /// The next wait, at least `retry_after`; `None` if it would exceed the patience.
    pub fn next(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        let own = jittered(FIRST.saturating_mul(1 << self.attempt.min(10)).min(LONGEST));
        let wait = retry_after.map_or(own, |retry_after| retry_after.max(FIRST));
        self.attempt += 1;
        let spent = self.waited.max(self.begun.elapsed());
        if wait > self.patience.saturating_sub(spent) || wait > LONGEST_ASKED {
            return None;
        }
        self.waited += wait;
        Some(wait)
    }
}

/// The `Retry-After` of a response; a number beyond `u64` is its maximum. A date is compared with the response's own
/// `Date`, because the local clock may be wrong. `None` for other texts, and for a date without `Date`.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let (until, from) = (date(headers, RETRY_AFTER)?, date(headers, DATE)?);
    Some(until.duration_since(from).unwrap_or_default())
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok()
}

/// A random duration between half of `wait` and `wait`.
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
    fn time_spent_in_exchanges_counts_for_the_patience() {
        let patience = Duration::from_secs(5);
        let mut backoff = Backoff { begun: Instant::now() - patience, ..Backoff::within(patience) };
        assert_eq!(backoff.next(Some(Duration::ZERO)), None);
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_however_large_or_a_date() {
        let parsed = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            headers.insert(DATE, "Wed, 21 Oct 2026 07:27:30 GMT".parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(parsed("7"), Some(Duration::from_secs(7)));
        assert_eq!(parsed("99999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(parsed("Wed, 21 Oct 2026 07:28:00 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(parsed("Wed, 21 Oct 2026 07:27:00 GMT"), Some(Duration::ZERO));
        for other in ["", "-1", "+1", "1.5", "soon"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    #[test]
    fn a_service_that_asks_for_an_hour_is_not_waited_for() {
        assert_eq!(Backoff::within(Duration::MAX).next(Some(Duration::from_secs(3600))), None);
    }
}
