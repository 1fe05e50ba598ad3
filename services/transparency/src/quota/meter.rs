//! A rate limit with one counter per client or issuer.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::limits::{RATE_BUCKETS, RATE_COUNT_EVERY, Rate};
use crate::quota::rates::{Issuer, OverRate};

/// The key of a rate counter: requests with the same bucket are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateBucket {
    /// A client with the configuration's token of this index.
    Token(usize),
    /// A client at this IPv4 address.
    V4(Ipv4Addr),
    /// A client in this IPv6 /64.
    V6Net(u64),
    /// An issuer, while this process counts it without the database.
    Issuer(Issuer),
    /// All addresses and issuers together, once there are more than [`RATE_BUCKETS`].
    Crowd,
}

impl RateBucket {
    /// The bucket to count in once there are too many. Tokens keep their own, since the configuration bounds their
    /// number.
    fn crowded(self) -> RateBucket {
        match self {
            RateBucket::Token(_) => self,
            RateBucket::V4(_) | RateBucket::V6Net(_) | RateBucket::Issuer(_) | RateBucket::Crowd => {
                RateBucket::Crowd
            }
        }
    }
}

type Limiter =
    RateLimiter<RateBucket, DefaultKeyedStateStore<RateBucket>, DefaultClock, StateInformationMiddleware>;

/// A rate limit with one counter per bucket.
pub struct RateMeter {
    /// The name that clients see.
    pub name: &'static str,
    /// The rate.
    pub rate: Rate,
    /// The `RateLimit-Policy` field: the burst (`q`) and the seconds in which it is replenished (`w`).
    policy: Option<HeaderValue>,
    limiter: Limiter,
    clock: DefaultClock,
    charged: AtomicU64,
    crowded: AtomicBool,
    /// Refunds per bucket: requests that were charged and then failed through no fault of the client.
    refunds: Mutex<HashMap<RateBucket, u32>>,
}

impl RateMeter {
    /// Creates a meter with this rate. Clients see `name` in `RateLimit`.
    pub fn new(name: &'static str, rate: Rate) -> Self {
        let quota = Quota::with_period(rate.interval()).unwrap_or(Quota::per_second(rate.requests));
        let quota = quota.allow_burst(rate.burst);
        let window = (rate.interval() * rate.burst.get()).as_secs_f64().ceil() as u64;
        let policy = format!("\"{name}\";q={};w={}", rate.burst, window.max(1));
        Self {
            name,
            rate,
            policy: HeaderValue::from_str(&policy).ok(),
            limiter: RateLimiter::keyed(quota).with_middleware(),
            clock: DefaultClock::default(),
            charged: AtomicU64::new(0),
            crowded: AtomicBool::new(false),
            refunds: Mutex::default(),
        }
    }

    /// Charges one request and returns how many more are allowed at once.
    pub fn charge(&self, bucket: RateBucket) -> Result<u32, OverRate> {
        let bucket = if self.is_crowded() { bucket.crowded() } else { bucket };
        match self.limiter.check_key(&bucket) {
            Ok(state) => Ok(state.remaining_burst_capacity()),
            Err(_) if self.use_refund(bucket) => Ok(0),
            Err(early) => Err(OverRate { rate: self.rate, wait: early.wait_time_from(self.clock.now()) }),
        }
    }

    /// Returns `true` if there are more than [`RATE_BUCKETS`] buckets. Counting them locks the whole map, so it happens
    /// only every [`RATE_COUNT_EVERY`] charges.
    fn is_crowded(&self) -> bool {
        if self.charged.fetch_add(1, Ordering::Relaxed).is_multiple_of(RATE_COUNT_EVERY) {
            self.crowded.store(self.limiter.len() > RATE_BUCKETS, Ordering::Relaxed);
        }
        self.crowded.load(Ordering::Relaxed)
    }

    /// Adds the remaining quota to a response's header.
    pub fn write_headers(&self, headers: &mut HeaderMap, left: u32, wait: Option<u64>) {
        let wait = wait.map_or_else(String::new, |seconds| format!(";t={seconds}"));
        if let (Some(policy), Ok(state)) =
            (&self.policy, HeaderValue::from_str(&format!("\"{}\";r={left}{wait}", self.name)))
        {
            headers.insert(HeaderName::from_static("ratelimit-policy"), policy.clone());
            headers.insert(HeaderName::from_static("ratelimit"), state);
        }
    }

    /// Refunds one request.
    pub fn refund(&self, bucket: RateBucket) {
        let mut given = self.refunds.lock().unwrap_or_else(PoisonError::into_inner);
        if given.len() < RATE_BUCKETS {
            let credit = given.entry(bucket).or_default();
            *credit = (*credit + 1).min(self.rate.burst.get());
        }
    }

    fn use_refund(&self, bucket: RateBucket) -> bool {
        let mut given = self.refunds.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(credit) = given.get_mut(&bucket) else { return false };
        *credit -= 1;
        if *credit == 0 {
            given.remove(&bucket);
        }
        true
    }

    /// Removes the buckets that are fully replenished, and all refunds.
    pub fn sweep(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
        self.refunds.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_token_keeps_its_share_among_more_addresses_than_are_counted() {
        let meter = RateMeter::new("writes", Rate::per_second(1, 2));
        for net in 0..(RATE_BUCKETS as u64 + 2 * RATE_COUNT_EVERY) {
            let _ = meter.charge(RateBucket::V6Net(net));
        }
        assert!(meter.charge(RateBucket::V6Net(u64::MAX)).is_err(), "newcomers share one bucket");
        assert!(meter.charge(RateBucket::Token(0)).is_ok());
    }

    #[test]
    fn a_request_that_failed_through_our_fault_is_given_back() {
        let meter = RateMeter::new("writes", Rate::per_second(1, 1));
        let bucket = RateBucket::Crowd;
        assert!(meter.charge(bucket).is_ok());
        let refused = meter.charge(bucket).unwrap_err();
        assert!(refused.wait > Duration::ZERO && refused.wait <= Duration::from_secs(1));
        meter.refund(bucket);
        assert!(meter.charge(bucket).is_ok());
        assert!(meter.charge(bucket).is_err());
    }
}
