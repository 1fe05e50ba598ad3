//! The rate limiter per client address (V-11).

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use serving::network::client_network;

use crate::config::Intake;
use crate::limits::COUNTED_ADDRESSES;

/// A rate limiter for requests, keyed by client address.
pub struct AddressRateLimit {
    limiter: DefaultKeyedRateLimiter<Bucket>,
    clock: DefaultClock,
    rate: (u32, u32),
    /// The time of the last request of each address with a count of its own.
    known: Mutex<HashMap<IpAddr, Instant>>,
    /// The maximum number of addresses with a count of their own.
    most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Bucket {
    Address(IpAddr),
    /// The shared count of all new addresses, while the maximum is reached.
    Crowd,
}

impl AddressRateLimit {
    /// A rate limiter with this rate and burst.
    pub fn new(intake: &Intake) -> Self {
        Self::counting(intake, COUNTED_ADDRESSES)
    }

    fn counting(intake: &Intake, most: usize) -> Self {
        let rate = (intake.requests_per_second, intake.burst);
        let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_one(rate.0)).allow_burst(at_least_one(rate.1));
        Self {
            limiter: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            rate,
            known: Mutex::default(),
            most,
        }
    }

    /// Returns whether the limiter has the rate and burst of `intake`.
    pub fn is_at(&self, intake: &Intake) -> bool {
        self.rate == (intake.requests_per_second, intake.burst)
    }

    /// Counts one request.
    ///
    /// # Errors
    /// The time to wait, if the address has reached its limit.
    pub fn charge(&self, address: IpAddr) -> Result<(), Duration> {
        self.limiter.check_key(&self.bucket(address)).map_err(|early| early.wait_time_from(self.clock.now()))
    }

    /// The count of an address. A known address keeps its own, however many others send requests.
    fn bucket(&self, address: IpAddr) -> Bucket {
        let address = client_network(address);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.most && !known.contains_key(&address) {
            return Bucket::Crowd;
        }
        known.insert(address, Instant::now());
        Bucket::Address(address)
    }

    /// Removes addresses that were idle for so long that their whole burst is available again.
    pub fn sweep(&self) {
        let (rate, burst) = self.rate;
        let refilled = Duration::from_secs(u64::from(burst.div_ceil(rate.max(1))));
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, last| last.elapsed() <= refilled.max(Duration::from_secs(1)));
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn only_newcomers_share_the_count_of_a_crowd() {
        let intake = Intake { requests_per_second: 1, burst: 3, ..Intake::default() };
        let pace = AddressRateLimit::counting(&intake, 10);
        let known = IpAddr::from([192, 0, 2, 1]);
        assert!(pace.charge(known).is_ok());
        let crowd = (0..200_u32).map(|number| IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number)));
        let refused = crowd.filter(|address| pace.charge(*address).is_err()).count();
        assert_eq!(refused, 200 - 9 - 3, "nine were counted by themselves, and three were the crowd's");
        assert!(pace.charge(known).is_ok() && pace.charge(known).is_ok(), "it has its own count still");
        assert!(pace.charge(known).is_err());
    }

    #[test]
    fn one_network_of_64_bits_is_one_client() {
        let intake = Intake { requests_per_second: 1, burst: 1, ..Intake::default() };
        let pace = AddressRateLimit::new(&intake);
        let at = |text: &str| text.parse::<IpAddr>().map(|address| pace.charge(address).is_ok());
        assert_eq!(at("2001:db8::1"), Ok(true));
        assert_eq!(at("2001:db8::2"), Ok(false));
        assert_eq!(at("2001:db8:0:1::1"), Ok(true));
        assert_eq!(at("::ffff:192.0.2.1"), Ok(true));
        assert_eq!(at("192.0.2.1"), Ok(false), "the same in the older notation");
    }
}
