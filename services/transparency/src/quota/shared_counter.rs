//! The quota of registrations per issuer, counted by all processes of a log together.
//!
//! The counter is in the database: in each window of time an issuer has a number of registrations, and a process takes
//! them from the counter in chunks, so that most registrations need no query. Unused registrations of a chunk lapse
//! with the window: together the processes never admit more than the rate, and rarely a little less. Windows begin at
//! whole multiples of their length, by each process's clock; around the boundary of two windows both quotas may be used
//! at once, as with any fixed windows.
//!
//! **A wall clock that is set** while the process runs does not move its windows, as they go on by the steady clock. A
//! counter that a process with a clock ahead left in the database is removed by the next
//! [`sweep`](SharedIssuerQuota::sweep) of another one; until then its issuer may wait. A process whose clock is far
//! off removes the counters of the others in the same way: after each of its sweeps, their issuers may use the quota
//! once more. That ends when it starts again with its clock right.
//!
//! **When the database does not answer** the process counts alone, with the whole rate, until the database answers
//! again. This admits no flood: a registration that cannot be counted cannot be committed either, and each of N
//! processes keeps the rate. The failed counter causes no refusal of its own: the registration that follows reports the
//! database's error, or succeeds.
//!
//! Quotas are configuration. They delay statements and decide nothing about them, and an audit does not know them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sequencer::{CLOCK_TOLERANCE, Clock, Now, SystemClock};
use store::Quotas;
use tokio::sync::Mutex as Turn;

use crate::limits::{QUOTA_RETRY, QUOTA_TIME, RATE_BUCKETS};
use crate::quota::rates::{CountedIssuer, IssuerRates, OverRate, Window};

/// Registrations that this process took from an issuer's counter and has not used.
#[derive(Debug, Default)]
struct Allowance {
    start: u64,
    left: u64,
    /// `true` if the counter in the database is used up in this window.
    used_up: bool,
}

/// The quotas of all issuers.
pub struct SharedIssuerQuota {
    rates: IssuerRates,
    issuers: Mutex<HashMap<CountedIssuer, Arc<Turn<Allowance>>>>,
    /// End of the time in which the database is not queried, after it did not answer.
    silent_until: Mutex<Option<Instant>>,
}

/// The counter of a charge.
#[derive(Debug, PartialEq, Eq)]
pub enum SharedCharge {
    /// The registration is counted in the database, for all processes.
    Shared {
        /// The key it was counted under.
        issuer: CountedIssuer,
        /// Begin of the window, in Unix seconds.
        window: u64,
    },
    /// The database did not answer: the caller must count alone.
    Local,
    /// The issuer has no limit.
    NoLimit,
}

impl SharedIssuerQuota {
    /// A quota at these rates.
    pub fn new(rates: IssuerRates) -> Self {
        Self { rates, issuers: Mutex::default(), silent_until: Mutex::default() }
    }

    /// The rates.
    pub fn rates(&self) -> &IssuerRates {
        &self.rates
    }

    /// Charges one registration of an issuer; [`OverRate`] if its quota is used up.
    pub async fn charge(
        &self,
        counters: &dyn Quotas,
        issuer: CountedIssuer,
    ) -> Result<SharedCharge, OverRate> {
        self.charge_at(counters, issuer, now()).await
    }

    async fn charge_at(
        &self,
        counters: &dyn Quotas,
        issuer: CountedIssuer,
        now: Duration,
    ) -> Result<SharedCharge, OverRate> {
        let Some(rate) = self.rates.of(issuer) else { return Ok(SharedCharge::NoLimit) };
        let window = Window::of(rate);
        let (issuer, allowance) = self.allowance(issuer);
        // One charge at a time per issuer: the second one uses the chunk that the first one took.
        let mut allowance = allowance.lock().await;
        let start = window.start(now);
        if allowance.start < start {
            *allowance = Allowance { start, ..Allowance::default() };
        }
        if allowance.left == 0 && !allowance.used_up {
            match self.take(counters, issuer, window, start).await {
                Some(taken) => {
                    allowance.left = taken;
                    allowance.used_up = taken < window.chunk();
                }
                None => return Ok(SharedCharge::Local),
            }
        }
        match allowance.left.checked_sub(1) {
            Some(left) => {
                allowance.left = left;
                Ok(SharedCharge::Shared { issuer, window: start })
            }
            None => Err(OverRate { rate, wait: window.rest(now) }),
        }
    }

    /// Refunds one registration to the window in which it was charged. Ignored if that window is over.
    pub async fn refund(&self, issuer: CountedIssuer, window: u64) {
        let known = self.issuers.lock().unwrap_or_else(PoisonError::into_inner).get(&issuer).cloned();
        let (Some(allowance), Some(Window { limit, .. })) = (known, self.rates.window_of(issuer)) else {
            return;
        };
        let mut allowance = allowance.lock().await;
        if allowance.start == window {
            allowance.left = (allowance.left + 1).min(limit);
        }
    }

    /// A chunk of an issuer's window; `None` where the database does not answer.
    async fn take(
        &self,
        counters: &dyn Quotas,
        issuer: CountedIssuer,
        window: Window,
        start: u64,
    ) -> Option<u64> {
        if self.is_silent() {
            return None;
        }
        let bucket = issuer.bucket();
        let asked = counters.take_quota(&bucket, start, window.limit, window.chunk());
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

    fn allowance(&self, issuer: CountedIssuer) -> (CountedIssuer, Arc<Turn<Allowance>>) {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        let crowded = issuers.len() >= RATE_BUCKETS && !issuers.contains_key(&issuer);
        let crowded = crowded && !self.rates.is_named(issuer);
        let issuer = if crowded { CountedIssuer::CROWD } else { issuer };
        (issuer, issuers.entry(issuer).or_default().clone())
    }

    /// Removes past windows, here and in the database, and there windows in the future too.
    pub async fn sweep(&self, counters: &dyn Quotas) {
        let now = now();
        self.issuers.lock().unwrap_or_else(PoisonError::into_inner).retain(|issuer, allowance| {
            let start = self.rates.window_of(*issuer).map_or(u64::MAX, |window| window.start(now));
            // Somebody who is counting holds it: then it is not over.
            allowance.try_lock().is_ok_and(|allowance| allowance.start >= start)
                || Arc::strong_count(allowance) > 1
        });
        let Some(longest) = self.rates.longest_window() else { return };
        // A clock that is behind by a window still finds its counter, and one that is ahead within the tolerance keeps
        // its own.
        let (start, margin) = (longest.start(now), 2 * longest.seconds);
        let keep = start.saturating_sub(margin)..start.saturating_add(margin + CLOCK_TOLERANCE);
        if let Err(error) = counters.trim_quotas(keep).await {
            tracing::debug!(%error, "quotas of other times stay for now");
        }
    }
}

/// Time since 1970: by the wall clock when the process first asked, and by the steady clock since.
fn now() -> Duration {
    static FIRST: LazyLock<Now> = LazyLock::new(|| SystemClock.now());
    steady_time(*FIRST, SystemClock.now())
}

fn steady_time(first: Now, now: Now) -> Duration {
    first.wall + now.steady.saturating_sub(first.steady)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use crate::limits::Rate;
    use store::StoreError;
    use store::quota::Counters;

    use super::*;

    /// The counters of a database; `None` while it is unavailable.
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

        async fn trim_quotas(&self, keep: Range<u64>) -> Result<u64, StoreError> {
            self.0.as_ref().map_or_else(|| Err(StoreError::Unavailable("away".into())), |c| Ok(c.trim(keep)))
        }
    }

    /// One rate for all issuers.
    fn quota(rate: Rate) -> SharedIssuerQuota {
        SharedIssuerQuota::new(IssuerRates { others: Some(rate), ..IssuerRates::default() })
    }

    /// The rate of the issuer `a`, and that of the others.
    fn quota_of_a(rate: Rate, others: Option<Rate>) -> SharedIssuerQuota {
        SharedIssuerQuota::new(IssuerRates {
            named: HashMap::from([(CountedIssuer::named("a"), rate)]),
            others,
        })
    }

    fn database() -> Database {
        Database(Some(Counters::default()))
    }

    const AT: Duration = Duration::from_millis(1_000_000_500);

    async fn admitted(
        quotas: &[SharedIssuerQuota],
        database: &Database,
        tries: usize,
        now: Duration,
    ) -> usize {
        let mut admitted = 0;
        for n in 0..tries {
            let quota = &quotas[n % quotas.len()];
            admitted += usize::from(quota.charge_at(database, CountedIssuer::named("a"), now).await.is_ok());
        }
        admitted
    }

    fn replicas(number: usize, rate: Rate) -> Vec<SharedIssuerQuota> {
        (0..number).map(|_| quota(rate)).collect()
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
        let quota = quota(Rate::per_second(1, 4));
        let database = database();
        let now = Duration::from_millis(4_001_500);
        for _ in 0..4 {
            quota.charge_at(&database, CountedIssuer::named("a"), now).await.unwrap();
        }
        let over = quota.charge_at(&database, CountedIssuer::named("a"), now).await.unwrap_err();
        assert_eq!(over.wait, Duration::from_millis(2_500));
        assert!(quota.charge_at(&database, CountedIssuer::named("b"), now).await.is_ok(), "another issuer");
    }

    #[tokio::test]
    async fn an_issuer_that_is_named_has_its_own_rate_and_is_told_that() {
        let (named, others) = (Rate::per_second(2, 8), Rate::per_second(1, 1));
        let quota = quota_of_a(named, Some(others));
        let database = database();
        let charge = async |issuer| quota.charge_at(&database, CountedIssuer::named(issuer), AT).await;
        for _ in 0..8 {
            charge("a").await.unwrap();
        }
        let over = charge("a").await.unwrap_err();
        assert_eq!((over.rate, over.wait), (named, Duration::from_millis(3_500)), "windows of four seconds");
        charge("b").await.unwrap();
        let over = charge("b").await.unwrap_err();
        assert_eq!((over.rate, over.wait), (others, Duration::from_millis(500)), "windows of one second");
    }

    #[tokio::test]
    async fn without_a_rate_for_the_others_they_have_no_limit() {
        let quota = quota_of_a(Rate::per_second(1, 1), None);
        let database = database();
        for _ in 0..100 {
            let charged = quota.charge_at(&database, CountedIssuer::named("b"), AT).await;
            assert_eq!(charged, Ok(SharedCharge::NoLimit));
        }
        assert_eq!(admitted(&[quota], &database, 10, AT).await, 1);
    }

    #[tokio::test]
    async fn an_issuer_that_is_named_is_never_counted_with_the_crowd() {
        let quota = quota_of_a(Rate::per_second(1, 1), Some(Rate::per_second(1, 1)));
        let issuer = |n: u128| CountedIssuer((n + 1).to_be_bytes());
        let crowd = (0..RATE_BUCKETS as u128).map(|n| (issuer(n), Arc::default()));
        quota.issuers.lock().unwrap().extend(crowd);
        assert_eq!(quota.allowance(CountedIssuer::named("b")).0, CountedIssuer::CROWD);
        assert_eq!(quota.allowance(CountedIssuer::named("a")).0, CountedIssuer::named("a"));
    }

    #[tokio::test]
    async fn counters_are_kept_as_long_as_the_longest_window() {
        let hourly = Rate { period: Duration::from_secs(3600), ..Rate::per_second(1, 1) };
        let quota = quota_of_a(hourly, Some(Rate::per_second(1, 1)));
        let database = database();
        quota.charge(&database, CountedIssuer::named("a")).await.unwrap();
        quota.charge(&database, CountedIssuer::named("b")).await.unwrap();
        quota.sweep(&database).await;
        let another = quota_of_a(hourly, None);
        assert!(another.charge(&database, CountedIssuer::named("a")).await.is_err(), "the hour is not over");
        assert_eq!(database.0.as_ref().unwrap().trim(0..0), 2);
    }

    #[tokio::test]
    async fn without_the_database_each_process_counts_alone_and_does_not_ask_every_time() {
        let quota = quota(Rate::per_second(1, 1));
        let away = Database(None);
        assert_eq!(quota.charge_at(&away, CountedIssuer::named("a"), AT).await, Ok(SharedCharge::Local));
        let back = database();
        assert_eq!(
            quota.charge_at(&back, CountedIssuer::named("a"), AT).await,
            Ok(SharedCharge::Local),
            "not asked yet"
        );
        tokio::time::sleep(QUOTA_RETRY).await;
        let charged = quota.charge_at(&back, CountedIssuer::named("a"), AT).await;
        assert!(matches!(charged, Ok(SharedCharge::Shared { .. })), "{charged:?}");
        assert!(quota.charge_at(&back, CountedIssuer::named("a"), AT).await.is_err());
    }

    #[tokio::test]
    async fn what_is_given_back_counts_in_its_own_window_alone() {
        let quota = quota(Rate::per_second(1, 1));
        let (database, issuer) = (database(), CountedIssuer::named("a"));
        let charge = async |at| quota.charge_at(&database, issuer, at).await;
        let Ok(SharedCharge::Shared { window, .. }) = charge(AT).await else { panic!("charged alone") };
        assert!(charge(AT).await.is_err());
        quota.refund(issuer, window).await;
        assert!(charge(AT).await.is_ok());
        let next = AT + Duration::from_secs(1);
        assert!(charge(next).await.is_ok());
        quota.refund(issuer, window).await;
        assert!(charge(next).await.is_err(), "that window is over");
    }

    #[tokio::test]
    async fn windows_that_are_over_are_forgotten() {
        let quota = quota(Rate::per_second(1, 1));
        let database = database();
        quota.charge_at(&database, CountedIssuer::named("a"), AT).await.unwrap();
        quota.sweep(&database).await;
        assert!(quota.issuers.lock().unwrap().is_empty());
        assert_eq!(database.0.as_ref().unwrap().trim(0..0), 0);
    }

    #[test]
    fn a_wall_clock_that_is_set_moves_no_window() {
        let at = |wall, steady| Now { wall: Duration::from_secs(wall), steady: Duration::from_secs(steady) };
        for wall in [0, 1_000, 1_010, 90_000] {
            assert_eq!(steady_time(at(1_000, 5), at(wall, 15)), Duration::from_secs(1_010), "{wall}");
        }
    }

    #[tokio::test]
    async fn a_counter_of_a_process_with_a_clock_ahead_is_removed_by_the_others() {
        let (ahead, right) = (quota(Rate::per_second(1, 1)), quota(Rate::per_second(1, 1)));
        let (database, issuer) = (database(), CountedIssuer::named("a"));
        let day = Duration::from_secs(86_400);
        ahead.charge_at(&database, issuer, now() + day).await.unwrap();
        assert!(right.charge_at(&database, issuer, now()).await.is_err(), "counted by a clock that is ahead");
        right.sweep(&database).await;
        let next = now() + Duration::from_secs(1);
        assert!(matches!(right.charge_at(&database, issuer, next).await, Ok(SharedCharge::Shared { .. })));
    }
}
