//! How often an address may come (V-11).

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::config::Intake;
use crate::limits::COUNTED_ADDRESSES;

/// Counts requests by address.
pub struct Pace {
    limiter: DefaultKeyedRateLimiter<Bucket>,
    clock: DefaultClock,
    rate: (u32, u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Bucket {
    V4(Ipv4Addr),
    /// Whoever has one address of a /64 has them all.
    V6Net(u64),
    /// All newcomers, once there are too many addresses to count.
    Crowd,
}

impl Pace {
    /// A count at this rate.
    pub fn new(intake: &Intake) -> Self {
        let rate = (intake.requests_per_second, intake.burst);
        let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_one(rate.0)).allow_burst(at_least_one(rate.1));
        Self { limiter: RateLimiter::keyed(quota), clock: DefaultClock::default(), rate }
    }

    /// Whether it counts at this rate.
    pub fn is_at(&self, intake: &Intake) -> bool {
        self.rate == (intake.requests_per_second, intake.burst)
    }

    /// Counts one request.
    ///
    /// # Errors
    /// If it is one too many: when the next may come.
    pub fn charge(&self, address: IpAddr) -> Result<(), Duration> {
        let bucket = match self.limiter.len() < COUNTED_ADDRESSES {
            true => bucket(address),
            false => Bucket::Crowd,
        };
        self.limiter.check_key(&bucket).map_err(|early| early.wait_time_from(self.clock.now()))
    }

    /// Forgets addresses that have not come for a while.
    pub fn sweep(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

fn bucket(address: IpAddr) -> Bucket {
    match address.to_canonical() {
        IpAddr::V4(address) => Bucket::V4(address),
        IpAddr::V6(address) => Bucket::V6Net(u64::try_from(address.to_bits() >> 64).unwrap_or_default()),
    }
}
