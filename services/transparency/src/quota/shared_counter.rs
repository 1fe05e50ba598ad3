//! The quota of registrations per issuer, counted by all processes of a log together.
//!
//! The counter is in the database: in each window of time an issuer has a number of registrations, and a process takes
//! them from the counter in chunks, so that most registrations need no query. Unused registrations of a chunk lapse
//! with the window: together the processes never admit more than the rate, and rarely a little less. Windows begin at
//! whole multiples of their length, by the clock of the database server ([`WindowClock`]); around the boundary of two
//! windows both quotas may be used at once, as with any fixed windows.
//!
//! **A process whose own clock is off** counts and removes as the others do. The server's clock is read at the first
//! charge and at each [`sweep`](SharedIssuerQuota::sweep). If it was ahead and was set, the next sweep removes the counters
//! that it left far in the future; until then their issuers may wait.
//!
//! **When the database does not answer** the process counts alone, with the whole rate, until the database answers
//! again. This admits no flood: a registration that cannot be counted cannot be committed either, and each of N
//! processes keeps the rate. The failed counter causes no refusal of its own: the registration that follows reports the
//! database's error, or succeeds.
//!
//! Quotas are configuration. They delay statements and decide nothing about them, and an audit does not know them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sequencer::CLOCK_TOLERANCE;
use store::{QuotaStore, StoreError};
use tokio::sync::Mutex as Turn;

use crate::limits::{QUOTA_RETRY, QUOTA_TIME, RATE_BUCKETS};
use crate::quota::rates::{CountedIssuer, IssuerRates, OverRate, Window};
use crate::quota::window_clock::WindowClock;

/// Registrations that this process took from an issuer's counter and has not used.
#[derive(Debug, Default)]
struct Allowance {
    start: u64,
    left: u64,
    /// `true` if the counter in the database is used up in this window.
    used_up: bool,
}

impl Allowance {
    /// Returns `true` if it is of the window that begins at `start`, or of the next one, which a concurrent charge can have
    /// begun. One of a later window is left from before the server's clock was set back.
    fn is_current(&self, start: u64, window: Window) -> bool {
        (start..=start.saturating_add(window.seconds)).contains(&self.start)
    }
}

/// The quotas of all issuers.
pub struct SharedIssuerQuota {
    rates: IssuerRates,
    clock: WindowClock,
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
        Self {
            rates,
            clock: WindowClock::default(),
            issuers: Mutex::default(),
            silent_until: Mutex::default(),
        }
    }

    /// The rates.
    pub fn rates(&self) -> &IssuerRates {
        &self.rates
    }

    /// Charges one registration of an issuer; [`OverRate`] if its quota is used up.
    pub async fn charge(
        &self,
        counters: &dyn QuotaStore,
        issuer: CountedIssuer,
    ) -> Result<SharedCharge, OverRate> {
        let now = match self.clock.time() {
            None => self.answered(self.clock.read(counters)).await,
            known => known,
        };
        match now {
            Some(now) => self.charge_at(counters, issuer, now).await,
            None => Ok(SharedCharge::Local),
        }
    }

    async fn charge_at(
        &self,
        counters: &dyn QuotaStore,
        issuer: CountedIssuer,
        now: Duration,
    ) -> Result<SharedCharge, OverRate> {
        let Some(rate) = self.rates.of(issuer) else { return Ok(SharedCharge::NoLimit) };
        let window = Window::of(rate);
        let (issuer, allowance) = self.allowance(issuer);
        // One charge at a time per issuer: the second one uses the chunk that the first one took.
        let mut allowance = allowance.lock().await;
        let start = window.start(now);
        if !allowance.is_current(start, window) {
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
        counters: &dyn QuotaStore,
        issuer: CountedIssuer,
        window: Window,
        start: u64,
    ) -> Option<u64> {
        let bucket = issuer.bucket();
        self.answered(counters.take_quota(&bucket, start, window.limit, window.chunk())).await
    }

    /// The answer to a query; `None` where the database does not answer.
    async fn answered<T>(&self, query: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
        if self.is_silent() {
            return None;
        }
        match tokio::time::timeout(QUOTA_TIME, query).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => self.fall_silent(&error.to_string()),
            Err(_) => self.fall_silent("no answer in time"),
        }
    }

    fn is_silent(&self) -> bool {
        let until = self.silent_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn fall_silent<T>(&self, why: &str) -> Option<T> {
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

    /// Removes windows that are over or far in the future, here and in the database.
    pub async fn sweep(&self, counters: &dyn QuotaStore) {
        if let Err(error) = self.sweep_at_server_time(counters).await {
            tracing::debug!(%error, "quotas of other times stay for now");
        }
    }

    async fn sweep_at_server_time(&self, counters: &dyn QuotaStore) -> Result<(), StoreError> {
        let read = self.clock.read(counters).await;
        if let Some(now) = self.clock.time() {
            self.drop_other_allowances(now);
        }
        let (now, Some(longest)) = (read?, self.rates.longest_window()) else { return Ok(()) };
        // A reading that is behind by a window still finds its counter, and one that is ahead within the tolerance keeps
        // its own, as does one that came while this removal waited for the database.
        let (start, margin) = (longest.start(now), 2 * longest.seconds);
        let keep = start.saturating_sub(margin)..start.saturating_add(margin + CLOCK_TOLERANCE);
        counters.trim_quotas(keep).await?;
        Ok(())
    }

    /// Drops allowances of other windows than the current and the next one.
    fn drop_other_allowances(&self, now: Duration) {
        self.issuers.lock().unwrap_or_else(PoisonError::into_inner).retain(|issuer, allowance| {
            let window = self.rates.window_of(*issuer);
            let is_current = |allowance: &Allowance| {
                window.is_some_and(|window| allowance.is_current(window.start(now), window))
            };
            // Somebody who is counting holds it: then it is not over.
            allowance.try_lock().is_ok_and(|allowance| is_current(&allowance))
                || Arc::strong_count(allowance) > 1
        });
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use crate::limits::Rate;
    use store::quota::Counters;
    use store::{Quotas, ServerChecks};

    use super::*;

    /// The counters of a database, which are `None` while it is unavailable, and the clock of its server.
    struct Database(Option<Counters>, Mutex<Option<Duration>>);

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

    #[async_trait::async_trait]
    impl ServerChecks for Database {
        async fn check_durability(&self) -> Result<(), StoreError> {
            Ok(())
        }

        async fn clock(&self) -> Result<Option<Duration>, StoreError> {
            match &self.0 {
                Some(_) => Ok(*self.1.lock().unwrap()),
                None => Err(StoreError::Unavailable("away".into())),
            }
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

    /// One an hour for each issuer.
    fn hourly() -> Rate {
        Rate { period: Duration::from_secs(3600), ..Rate::per_second(1, 1) }
    }

    /// A database on this machine.
    fn database() -> Database {
        Database(Some(Counters::default()), Mutex::default())
    }

    /// A database whose server has this time.
    fn database_at(time: Duration) -> Database {
        Database(Some(Counters::default()), Mutex::new(Some(time)))
    }

    /// Times of servers in the middle of an hour: years before, and years after that of the tests.
    const LONG_AGO: Duration = Duration::from_secs(1_000_000_000);
    const LONG_AFTER: Duration = Duration::from_secs(4_000_000_000);

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
        let quota = quota_of_a(hourly(), Some(Rate::per_second(1, 1)));
        let database = database();
        quota.charge(&database, CountedIssuer::named("a")).await.unwrap();
        quota.charge(&database, CountedIssuer::named("b")).await.unwrap();
        quota.sweep(&database).await;
        let another = quota_of_a(hourly(), None);
        assert!(another.charge(&database, CountedIssuer::named("a")).await.is_err(), "the hour is not over");
        assert_eq!(database.0.as_ref().unwrap().trim(0..0), 2);
    }

    #[tokio::test]
    async fn without_the_database_each_process_counts_alone_and_does_not_ask_every_time() {
        let quota = quota(Rate::per_second(1, 1));
        let away = Database(None, Mutex::default());
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

    #[tokio::test]
    async fn windows_that_are_over_are_forgotten_also_while_the_database_does_not_answer() {
        let quota = quota(Rate::per_second(1, 1));
        let (there, away) = (database_at(LONG_AFTER), Database(None, Mutex::default()));
        quota.clock.read(&there).await.unwrap();
        quota.charge_at(&there, CountedIssuer::named("a"), AT).await.unwrap();
        quota.sweep(&away).await;
        assert!(quota.issuers.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn without_the_clock_of_the_database_a_process_counts_alone() {
        let away = Database(None, Mutex::default());
        let charged = quota(hourly()).charge(&away, CountedIssuer::named("a")).await;
        assert_eq!(charged, Ok(SharedCharge::Local));
    }

    #[tokio::test]
    async fn a_process_whose_own_clock_is_off_counts_with_the_others_and_removes_none_of_their_counters() {
        for server in [LONG_AGO, LONG_AFTER] {
            let (database, issuer) = (database_at(server), CountedIssuer::named("a"));
            let start = Window::of(hourly()).start(server);
            let taken = database.take_quota(&issuer.bucket(), start, 1, 1).await;
            assert_eq!(taken.unwrap(), 1, "by a process whose clock is right");
            let off = quota(hourly());
            assert!(off.charge(&database, issuer).await.is_err(), "{server:?}");
            off.sweep(&database).await;
            let another = quota(hourly());
            assert!(
                another.charge(&database, issuer).await.is_err(),
                "{server:?}: the counter is still there"
            );
        }
    }

    #[tokio::test]
    async fn after_the_clock_of_the_server_was_set_back_issuers_wait_until_the_next_sweep() {
        let (database, issuer) = (database_at(LONG_AFTER), CountedIssuer::named("a"));
        let quota = quota(hourly());
        assert!(quota.charge(&database, issuer).await.is_ok());
        *database.1.lock().unwrap() = Some(LONG_AGO);
        assert!(quota.charge(&database, issuer).await.is_err());
        quota.sweep(&database).await;
        assert!(quota.charge(&database, issuer).await.is_ok());
        assert!(quota.charge(&database, issuer).await.is_err());
    }

    #[tokio::test]
    async fn a_counter_of_a_process_with_a_clock_ahead_is_removed_by_the_others() {
        let (ahead, right) = (quota(Rate::per_second(1, 1)), quota(Rate::per_second(1, 1)));
        let (database, issuer) = (database_at(AT), CountedIssuer::named("a"));
        let day = Duration::from_secs(86_400);
        ahead.charge_at(&database, issuer, AT + day).await.unwrap();
        assert!(right.charge_at(&database, issuer, AT).await.is_err(), "counted by a clock that is ahead");
        right.sweep(&database).await;
        let next = AT + Duration::from_secs(1);
        assert!(matches!(right.charge_at(&database, issuer, next).await, Ok(SharedCharge::Shared { .. })));
    }
}
