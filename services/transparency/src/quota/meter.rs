//! A rate limit with one counter per client or issuer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use serving::rate_limit::{Rate, RateLimiter};

use crate::limits::RATE_BUCKETS;
use crate::quota::rates::{CountedIssuer, OverRate};

/// The key of a rate counter: requests with the same bucket are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateBucket {
    /// A client with the configuration's token of this index.
    Token(usize),
    /// A client without a token, by its address as [`client_network`](serving::network::client_network) returns it.
    Address(IpAddr),
    /// An issuer, while this process counts it without the database.
    Issuer(CountedIssuer),
    /// Requests whose client is not known.
    Unknown,
}

/// A rate limit with one counter per bucket, shown to clients in headers.
pub struct RateMeter {
    /// The name that clients see.
    pub name: &'static str,
    /// The `RateLimit-Policy` field: the burst (`q`) and the seconds in which it is replenished (`w`).
    policy: Option<HeaderValue>,
    limiter: RateLimiter<RateBucket>,
    /// Refunds per bucket: requests that were charged and then failed through no fault of the client.
    refunds: Mutex<HashMap<RateBucket, u32>>,
}

impl RateMeter {
    /// Creates a meter with this rate. Clients see `name` in `RateLimit`.
    pub fn new(name: &'static str, rate: Rate) -> Self {
        let window = rate.refill().as_secs_f64().ceil() as u64;
        let policy = format!("\"{name}\";q={};w={}", rate.burst, window.max(1));
        Self {
            name,
            policy: HeaderValue::from_str(&policy).ok(),
            limiter: RateLimiter::new(rate),
            refunds: Mutex::default(),
        }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.limiter.rate()
    }

    /// Charges one request and returns how many more are allowed at once.
    pub fn charge(&self, bucket: RateBucket) -> Result<u32, OverRate> {
        let charged = match bucket {
            RateBucket::Token(_) => self.limiter.charge_alone(bucket),
            _ => self.limiter.charge(bucket),
        };
        match charged {
            Err(_) if self.use_refund(bucket) => Ok(0),
            charged => charged.map_err(|wait| OverRate { rate: self.rate(), wait }),
        }
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
            *credit = (*credit + 1).min(self.rate().burst.get());
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
        self.limiter.sweep();
        self.refunds.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::time::Duration;

    use super::*;

    /// A rate whose counts no test outlasts.
    fn hourly(requests: u32) -> Rate {
        Rate { period: Duration::from_secs(3600), ..Rate::per_second(requests, requests) }
    }

    #[test]
    fn a_token_keeps_its_share_among_more_addresses_than_are_counted() {
        let meter = RateMeter::new("writes", hourly(2));
        let network = |number: u64| RateBucket::Address(Ipv6Addr::from(u128::from(number) << 64).into());
        for number in 0..(RATE_BUCKETS as u64 + 4) {
            let _ = meter.charge(network(number));
        }
        assert!(meter.charge(network(u64::MAX)).is_err(), "newcomers share one bucket");
        assert!(meter.charge(RateBucket::Token(0)).is_ok());
    }

    #[test]
    fn a_request_that_failed_through_our_fault_is_given_back() {
        let meter = RateMeter::new("writes", hourly(1));
        let bucket = RateBucket::Unknown;
        assert!(meter.charge(bucket).is_ok());
        let refused = meter.charge(bucket).unwrap_err();
        assert!(refused.wait > Duration::ZERO && refused.wait <= Duration::from_secs(3600));
        meter.refund(bucket);
        assert!(meter.charge(bucket).is_ok());
        assert!(meter.charge(bucket).is_err());
    }
}
