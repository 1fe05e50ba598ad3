//! A rate limiter with one count per client.
//!
//! Not here: who a client is ([`network`](crate::network) and the daemons' tokens), and the answer to one over its rate.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::Quota;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;

use crate::limits::COUNTED_CLIENTS;

/// So many requests in a period, and how many may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Sustained requests per period.
    pub requests: NonZeroU32,
    /// The period.
    pub period: Duration,
    /// Requests allowed at once after a pause.
    pub burst: NonZeroU32,
}

impl Rate {
    /// A rate of `requests` per second with this burst. Zero means one.
    pub fn per_second(requests: u32, burst: u32) -> Self {
        let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self { requests: at_least_one(requests), period: Duration::from_secs(1), burst: at_least_one(burst) }
    }

    /// The time in which one request is replenished.
    pub fn interval(&self) -> Duration {
        (self.period / self.requests.get()).max(Duration::from_nanos(1))
    }

    /// The time in which a whole burst is replenished.
    pub fn refill(&self) -> Duration {
        self.interval() * self.burst.get()
    }
}

type Limiter<K> = governor::RateLimiter<
    CountedAs<K>,
    DefaultKeyedStateStore<CountedAs<K>>,
    DefaultClock,
    StateInformationMiddleware,
>;

/// A rate limiter for requests, with a count for each key. There are at most [`COUNTED_CLIENTS`] counts: further new keys
/// share one, while known ones keep their own.
pub struct RateLimiter<K: Clone + Eq + Hash> {
    rate: Rate,
    limiter: Limiter<K>,
    clock: DefaultClock,
    /// The time of the last request of each key with a count of its own.
    known: Mutex<HashMap<K, Instant>>,
    /// The maximum number of such keys.
    most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CountedAs<K> {
    Client(K),
    /// The shared count of all new keys, while the maximum is reached.
    Crowd,
}

impl<K: Clone + Eq + Hash> RateLimiter<K> {
    /// A rate limiter with this rate.
    pub fn new(rate: Rate) -> Self {
        Self::counting(rate, COUNTED_CLIENTS)
    }

    fn counting(rate: Rate, most: usize) -> Self {
        let quota = Quota::with_period(rate.interval()).unwrap_or(Quota::per_second(rate.requests));
        let limiter = governor::RateLimiter::keyed(quota.allow_burst(rate.burst)).with_middleware();
        Self { rate, limiter, clock: DefaultClock::default(), known: Mutex::default(), most }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts one request, and returns how many more are allowed at once.
    ///
    /// # Errors
    /// The time to wait, if the key is over the rate.
    pub fn charge(&self, key: K) -> Result<u32, Duration> {
        self.check(&self.counted_as(key))
    }

    /// As [`charge`](Self::charge), for a key that never shares a count, because the configuration bounds the number of such
    /// keys.
    ///
    /// # Errors
    /// The time to wait, if the key is over the rate.
    pub fn charge_alone(&self, key: K) -> Result<u32, Duration> {
        self.check(&CountedAs::Client(key))
    }

    fn check(&self, key: &CountedAs<K>) -> Result<u32, Duration> {
        match self.limiter.check_key(key) {
            Ok(state) => Ok(state.remaining_burst_capacity()),
            Err(early) => Err(early.wait_time_from(self.clock.now())),
        }
    }

    fn counted_as(&self, key: K) -> CountedAs<K> {
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.most && !known.contains_key(&key) {
            return CountedAs::Crowd;
        }
        known.insert(key.clone(), now);
        CountedAs::Client(key)
    }

    /// Removes keys that were idle for so long that their whole burst is available again.
    pub fn sweep(&self) {
        let refill = self.rate.refill().max(Duration::from_secs(1));
        // Every request waits for this lock: the clock is read once, and not for each key.
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, last| now.saturating_duration_since(*last) <= refill);
        drop(known);
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rate whose counts no test outlasts.
    fn hourly(requests: u32) -> Rate {
        Rate { period: Duration::from_secs(3600), ..Rate::per_second(requests, requests) }
    }

    #[test]
    fn only_newcomers_share_the_count_of_a_crowd() {
        let limiter = RateLimiter::counting(hourly(3), 10);
        assert!(limiter.charge(0).is_ok());
        let refused = (1..=200).filter(|client| limiter.charge(*client).is_err()).count();
        assert_eq!(refused, 200 - 9 - 3, "nine were counted by themselves, and three were the crowd's");
        assert!(limiter.charge(0).is_ok() && limiter.charge(0).is_ok(), "it has its own count still");
        assert!(limiter.charge(0).is_err());
        assert_eq!(limiter.charge_alone(1000), Ok(2), "it is never one of the crowd");
    }

    #[test]
    fn a_client_over_its_rate_is_told_how_long_to_wait() {
        let limiter = RateLimiter::new(hourly(2));
        assert_eq!((limiter.charge("a"), limiter.charge("a")), (Ok(1), Ok(0)));
        let wait = limiter.charge("a").map_err(|wait| wait > Duration::ZERO && wait <= hourly(2).interval());
        assert_eq!(wait, Err(true));
        assert_eq!(limiter.charge("b"), Ok(1));
    }

    #[test]
    fn a_sweep_forgets_only_clients_whose_burst_is_available_again() {
        let limiter = RateLimiter::counting(hourly(1), 1);
        assert!(limiter.charge("a").is_ok());
        limiter.sweep();
        assert!(limiter.charge("a").is_err());
    }
}
