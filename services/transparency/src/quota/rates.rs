//! The rates of issuers, and their windows of time.

use std::collections::HashMap;
use std::time::Duration;

use data_encoding::HEXLOWER;
use display::counted;
use sha2::{Digest, Sha256};

use crate::limits::{Limits, QUOTA_CHUNKS, Rate};

/// A client is over its rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverRate {
    /// The allowed rate.
    pub rate: Rate,
    /// The time until the next request is allowed.
    pub wait: Duration,
}

impl OverRate {
    /// The rate in words, for example "500 requests per second".
    pub fn rate_in_words(&self) -> String {
        let requests = counted(self.rate.requests.get(), "request", "requests");
        match self.rate.period.as_secs() {
            1 => format!("{requests} per second"),
            60 => format!("{requests} per minute"),
            3600 => format!("{requests} per hour"),
            seconds => format!("{requests} per {seconds} seconds"),
        }
    }

    /// The wait in whole seconds, rounded up, for `Retry-After`.
    pub fn seconds(&self) -> u64 {
        self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0)
    }
}

/// The key of an issuer's counters: the first 16 bytes of the SHA-256 of its `iss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CountedIssuer(pub(super) [u8; 16]);

impl CountedIssuer {
    /// The shared key of new issuers, once there are more than [`RATE_BUCKETS`](crate::limits::RATE_BUCKETS).
    pub(super) const CROWD: CountedIssuer = CountedIssuer([0; 16]);

    /// The key of the issuer with this `iss`.
    pub fn named(iss: &str) -> Self {
        let digest = Sha256::digest(iss);
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        Self(short)
    }

    pub(super) fn bucket(&self) -> String {
        format!("issuer:{}", HEXLOWER.encode(&self.0))
    }
}

/// The rate of each issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssuerRates {
    pub(super) named: HashMap<CountedIssuer, Rate>,
    pub(super) others: Option<Rate>,
}

impl IssuerRates {
    /// The rate of this issuer; `None` if it has no limit.
    pub fn of(&self, issuer: CountedIssuer) -> Option<Rate> {
        self.named.get(&issuer).copied().or(self.others)
    }

    /// Every rate that some issuer has.
    pub fn all(&self) -> impl Iterator<Item = Rate> + '_ {
        self.named.values().copied().chain(self.others)
    }

    pub(super) fn is_named(&self, issuer: CountedIssuer) -> bool {
        self.named.contains_key(&issuer)
    }

    pub(super) fn window_of(&self, issuer: CountedIssuer) -> Option<Window> {
        self.of(issuer).map(Window::of)
    }

    pub(super) fn longest_window(&self) -> Option<Window> {
        self.all().map(Window::of).max_by_key(|window| window.seconds)
    }
}

impl From<&Limits> for IssuerRates {
    fn from(limits: &Limits) -> Self {
        let named = limits.named_issuers.iter().map(|(iss, rate)| (CountedIssuer::named(iss), *rate));
        Self { named: named.collect(), others: limits.issuer }
    }
}

/// A fixed window of time, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Length of the window.
    pub seconds: u64,
    /// Registrations per window.
    pub limit: u64,
}

impl Window {
    /// The window in which a whole burst is replenished, with the number of registrations that are replenished in it.
    pub fn of(rate: Rate) -> Self {
        let whole = rate.refill();
        let seconds = whole.as_secs() + u64::from(whole.subsec_nanos() > 0);
        let seconds = seconds.max(1);
        let earned = u128::from(seconds) * 1_000_000_000 / rate.interval().as_nanos().max(1);
        Self { seconds, limit: u64::try_from(earned).unwrap_or(u64::MAX).max(1) }
    }

    pub(super) fn start(&self, now: Duration) -> u64 {
        now.as_secs() / self.seconds * self.seconds
    }

    pub(super) fn rest(&self, now: Duration) -> Duration {
        Duration::from_secs(self.start(now) + self.seconds).saturating_sub(now)
    }

    /// Registrations taken from the database at one time: 1 for small quotas.
    pub(super) fn chunk(&self) -> u64 {
        (self.limit / QUOTA_CHUNKS).max(1)
    }
}
