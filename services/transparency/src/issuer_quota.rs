//! What one issuer may register, counted by all processes of a log together.
//!
//! The counter is in the database: in each window of time an issuer has so many registrations, and a process takes
//! them from the counter a few at a time, so that most registrations cost no query. What a process took and does not
//! use lapses with the window: together the processes never admit more than the rate, and rarely a little less.
//! Windows begin at whole multiples of their length, by each process's clock; around their edge two windows' worth
//! may come at once, as with any count by windows.
//!
//! **When the database does not answer** the process counts by itself, at the whole rate, until it answers again.
//! That is no flood: what cannot be counted cannot be committed either, and of N processes each keeps the rate. And it
//! is no outage of its own: the registration that follows says what is wrong with the database, or succeeds.
//!
//! Quotas are configuration. They delay; they decide nothing about a statement, and an audit does not know them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use store::Quotas;
use tokio::sync::Mutex as Turn;

use crate::doors::OverRate;
use crate::limits::{QUOTA_CHUNKS, QUOTA_RETRY, QUOTA_TIME, RATE_BUCKETS, Rate};

/// An issuer, to its counters: a name of bounded length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Issuer([u8; 16]);

impl Issuer {
    /// All newcomers, once there are too many issuers to keep.
    const CROWD: Issuer = Issuer([0; 16]);

    /// The issuer of this name.
    pub fn named(iss: &str) -> Self {
        let digest = Sha256::digest(iss);
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        Self(short)
    }

    fn bucket(&self) -> String {
        format!("issuer:{}", HEXLOWER.encode(&self.0))
    }
}

/// A window of time, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How long it is.
    pub seconds: u64,
    /// How many registrations it holds.
    pub limit: u64,
}

impl Window {
    /// As long as it takes to earn a whole burst back, and so many as are earned in it.
    pub fn of(rate: Rate) -> Self {
        let whole = rate.interval() * rate.burst.get();
        let seconds = whole.as_secs() + u64::from(whole.subsec_nanos() > 0);
        let seconds = seconds.max(1);
        let earned = u128::from(seconds) * 1_000_000_000 / rate.interval().as_nanos().max(1);
        Self { seconds, limit: u64::try_from(earned).unwrap_or(u64::MAX).max(1) }
    }

    fn start(&self, now: Duration) -> u64 {
        now.as_secs() / self.seconds * self.seconds
    }

    fn rest(&self, now: Duration) -> Duration {
        Duration::from_secs(self.start(now) + self.seconds).saturating_sub(now)
    }

    /// How many are taken at one time. Small quotas are counted one by one.
    fn chunk(&self) -> u64 {
        (self.limit / QUOTA_CHUNKS).max(1)
    }
}

/// What this process took from an issuer's counter and has not used.
#[derive(Debug, Default)]
struct Allowance {
    start: u64,
    left: u64,
    /// The counter had nothing more to give in this window.
    used_up: bool,
}

/// The quota of every issuer.
pub struct IssuerQuota {
    rate: Rate,
    window: Window,
    issuers: Mutex<HashMap<Issuer, Arc<Turn<Allowance>>>>,
    /// Until when the database is not asked, as it did not answer.
    silent_until: Mutex<Option<Instant>>,
}

/// How a charge came out.
#[derive(Debug, PartialEq, Eq)]
pub enum Charged {
    /// It was counted with everybody.
    Together {
        /// In whose name.
        issuer: Issuer,
        /// When the window began.
        window: u64,
    },
    /// Nobody answered: whoever asks counts by himself.
    Alone,
}

impl IssuerQuota {
    /// A quota at this rate.
    pub fn new(rate: Rate) -> Self {
        Self { rate, window: Window::of(rate), issuers: Mutex::default(), silent_until: Mutex::default() }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts one registration of an issuer.
    pub async fn charge(&self, counters: &dyn Quotas, issuer: Issuer) -> Result<Charged, OverRate> {
        self.charge_at(counters, issuer, now()).await
    }

    async fn charge_at(
        &self,
        counters: &dyn Quotas,
        issuer: Issuer,
        now: Duration,
    ) -> Result<Charged, OverRate> {
        let (issuer, allowance) = self.allowance(issuer);
        // One at a time for each issuer: the second finds what the first took.
        let mut allowance = allowance.lock().await;
        let start = self.window.start(now);
        if allowance.start < start {
            *allowance = Allowance { start, ..Allowance::default() };
        }
        if allowance.left == 0 && !allowance.used_up {
            match self.take(counters, issuer, start).await {
                Some(taken) => {
                    allowance.left = taken;
                    allowance.used_up = taken < self.window.chunk();
                }
                None => return Ok(Charged::Alone),
            }
        }
        match allowance.left.checked_sub(1) {
            Some(left) => {
                allowance.left = left;
                Ok(Charged::Together { issuer, window: start })
            }
            None => Err(OverRate { rate: self.rate, wait: self.window.rest(now) }),
        }
    }

    /// Counts one registration less of the window in which it was charged. A window that is over has no use for it.
    pub async fn give_back(&self, issuer: Issuer, window: u64) {
        let known = self.issuers.lock().unwrap_or_else(PoisonError::into_inner).get(&issuer).cloned();
        let Some(allowance) = known else { return };
        let mut allowance = allowance.lock().await;
        if allowance.start == window {
            allowance.left = (allowance.left + 1).min(self.window.limit);
        }
    }

    /// A chunk of an issuer's window; `None` where the database does not answer.
    async fn take(&self, counters: &dyn Quotas, issuer: Issuer, start: u64) -> Option<u64> {
        if self.is_silent() {
            return None;
        }
        let bucket = issuer.bucket();
        let asked = counters.take_quota(&bucket, start, self.window.limit, self.window.chunk());
        match tokio::time::timeout(QUOTA_TIME, asked).await {
            Ok(Ok(taken)) => Some(taken),
            Ok(Err(error)) => self.fall_silent(&error.to_string()),
            Err(_) => self.fall_silent("no answer in time"),
        }
    }

    fn is_silent(&self) -> bool {
        let until = self.silent_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn fall_silent(&self, why: &str) -> Option<u64> {
        tracing::warn!(why, "issuers are counted by this process alone until the database answers");
        let until = Instant::now() + QUOTA_RETRY;
        *self.silent_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        None
    }

    fn allowance(&self, issuer: Issuer) -> (Issuer, Arc<Turn<Allowance>>) {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        let crowded = issuers.len() >= RATE_BUCKETS && !issuers.contains_key(&issuer);
        let issuer = if crowded { Issuer::CROWD } else { issuer };
        (issuer, issuers.entry(issuer).or_default().clone())
    }

    /// Forgets windows that are over, here and in the database.
    pub async fn sweep(&self, counters: &dyn Quotas) {
        let start = self.window.start(now());
        self.issuers.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, allowance| {
            // Somebody who is counting holds it: then it is not over.
            allowance.try_lock().is_ok_and(|allowance| allowance.start >= start)
                || Arc::strong_count(allowance) > 1
        });
        // A clock that is behind by a window still finds its counter.
        if let Err(error) = counters.trim_quotas(start.saturating_sub(2 * self.window.seconds)).await {
            tracing::debug!(%error, "old quotas stay for now");
        }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use store::StoreError;
    use store::quota::Counters;

    use super::*;

    /// The counters of a database; `None` while it is away.
    struct Database(Option<Counters>);

    #[async_trait::async_trait]
    impl Quotas for Database {
        async fn take_quota(
            &self,
            bucket: &str,
            window: u64,
            limit: u64,
            want: u64,
        ) -> Result<u64, StoreError> {
            match &self.0 {
                Some(counters) => counters.take(bucket, window, limit, want),
                None => Err(StoreError::Unavailable("away".into())),
            }
        }

        async fn trim_quotas(&self, before: u64) -> Result<u64, StoreError> {
            self.0
                .as_ref()
                .map_or_else(|| Err(StoreError::Unavailable("away".into())), |c| Ok(c.trim(before)))
        }
    }

    fn database() -> Database {
        Database(Some(Counters::default()))
    }

    const AT: Duration = Duration::from_millis(1_000_000_500);

    async fn admitted(quotas: &[IssuerQuota], database: &Database, tries: usize, now: Duration) -> usize {
        let mut admitted = 0;
        for n in 0..tries {
            let quota = &quotas[n % quotas.len()];
            admitted += usize::from(quota.charge_at(database, Issuer::named("a"), now).await.is_ok());
        }
        admitted
    }

    fn replicas(number: usize, rate: Rate) -> Vec<IssuerQuota> {
        (0..number).map(|_| IssuerQuota::new(rate)).collect()
    }

    #[test]
    fn a_window_holds_what_its_rate_earns_in_it() {
        let window = |rate| {
            let Window { seconds, limit } = Window::of(rate);
            (seconds, limit)
        };
        assert_eq!(window(Rate::per_second(10, 40)), (4, 40));
        assert_eq!(window(Rate::per_second(10, 1)), (1, 10), "windows are whole seconds");
        assert_eq!(window(Rate::per_second(1, 60)), (60, 60));
        let slow = Rate { period: Duration::from_secs(3600), ..Rate::per_second(2, 1) };
        assert_eq!(window(slow), (1800, 1));
    }

    #[tokio::test]
    async fn all_processes_together_admit_the_rate_and_the_next_window_begins_anew() {
        for replicas in [replicas(1, Rate::per_second(10, 10)), replicas(4, Rate::per_second(10, 10))] {
            let database = database();
            assert_eq!(admitted(&replicas, &database, 200, AT).await, 10);
            assert_eq!(admitted(&replicas, &database, 200, AT + Duration::from_secs(1)).await, 10);
        }
    }

    #[tokio::test]
    async fn a_large_quota_is_taken_in_chunks_and_never_exceeded() {
        let replicas = replicas(3, Rate::per_second(1_000, 1_000));
        let database = database();
        let admitted = admitted(&replicas, &database, 5_000, AT).await;
        assert!((940..=1_000).contains(&admitted), "{admitted}");
    }

    #[tokio::test]
    async fn whoever_is_turned_away_is_told_when_the_window_ends() {
        let quota = IssuerQuota::new(Rate::per_second(1, 4));
        let database = database();
        let now = Duration::from_millis(4_001_500);
        for _ in 0..4 {
            quota.charge_at(&database, Issuer::named("a"), now).await.unwrap();
        }
        let over = quota.charge_at(&database, Issuer::named("a"), now).await.unwrap_err();
        assert_eq!(over.wait, Duration::from_millis(2_500));
        assert!(quota.charge_at(&database, Issuer::named("b"), now).await.is_ok(), "another issuer");
    }

    #[tokio::test]
    async fn without_the_database_each_process_counts_alone_and_does_not_ask_every_time() {
        let quota = IssuerQuota::new(Rate::per_second(1, 1));
        let away = Database(None);
        assert_eq!(quota.charge_at(&away, Issuer::named("a"), AT).await, Ok(Charged::Alone));
        let back = database();
        assert_eq!(quota.charge_at(&back, Issuer::named("a"), AT).await, Ok(Charged::Alone), "not asked yet");
        tokio::time::sleep(QUOTA_RETRY).await;
        let charged = quota.charge_at(&back, Issuer::named("a"), AT).await;
        assert!(matches!(charged, Ok(Charged::Together { .. })), "{charged:?}");
        assert!(quota.charge_at(&back, Issuer::named("a"), AT).await.is_err());
    }

    #[tokio::test]
    async fn what_is_given_back_counts_in_its_own_window_alone() {
        let quota = IssuerQuota::new(Rate::per_second(1, 1));
        let (database, issuer) = (database(), Issuer::named("a"));
        let charge = async |at| quota.charge_at(&database, issuer, at).await;
        let Ok(Charged::Together { window, .. }) = charge(AT).await else { panic!("charged alone") };
        assert!(charge(AT).await.is_err());
        quota.give_back(issuer, window).await;
        assert!(charge(AT).await.is_ok());
        let next = AT + Duration::from_secs(1);
        assert!(charge(next).await.is_ok());
        quota.give_back(issuer, window).await;
        assert!(charge(next).await.is_err(), "that window is over");
    }

    #[tokio::test]
    async fn windows_that_are_over_are_forgotten() {
        let quota = IssuerQuota::new(Rate::per_second(1, 1));
        let database = database();
        quota.charge_at(&database, Issuer::named("a"), AT).await.unwrap();
        quota.sweep(&database).await;
        assert!(quota.issuers.lock().unwrap().is_empty());
        assert_eq!(database.0.as_ref().unwrap().trim(u64::MAX), 0);
    }
}
