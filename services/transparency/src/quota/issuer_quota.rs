//! The quota of issuers: a registration is charged to the issuer whose signature was verified.
//!
//! A charge records its counter (the shared one of all processes, or this process's own while the database is
//! unavailable) and its window, and is refunded there only. It is refunded if the service failed, or if the statement
//! was registered before: resubmitting a registered statement is not charged to the issuer's quota.
//!
//! Not here: the counters (`shared_counter`, `meter`), and the outcome of a registration (`log`).

use std::collections::HashMap;
use std::sync::Arc;

use store::QuotaStore;

use crate::limits::Rate;
use crate::quota::meter::{RateBucket, RateMeter};
use crate::quota::rates::OverRate;
use crate::quota::rates::{CountedIssuer, IssuerRates};
use crate::quota::shared_counter::{SharedCharge, SharedIssuerQuota};

/// The quota of issuers: counted for all processes, or by this one while the database is unavailable.
pub struct IssuerQuota {
    shared: SharedIssuerQuota,
    local: HashMap<Rate, RateMeter>,
}

impl IssuerQuota {
    /// A door at these rates; `None` if no issuer has one.
    pub fn at(rates: IssuerRates) -> Option<Arc<Self>> {
        let local: HashMap<Rate, RateMeter> =
            rates.all().map(|rate| (rate, RateMeter::new("issuer", rate))).collect();
        (!local.is_empty()).then(|| Arc::new(Self { shared: SharedIssuerQuota::new(rates), local }))
    }

    /// The rates.
    pub fn rates(&self) -> &IssuerRates {
        self.shared.rates()
    }

    /// Removes the counters of issuers without recent registrations.
    pub async fn sweep(&self, counters: &dyn QuotaStore) {
        self.local.values().for_each(RateMeter::sweep);
        self.shared.sweep(counters).await;
    }

    /// Charges an issuer; `None` if it has no limit.
    async fn charge(&self, counters: &dyn QuotaStore, iss: &str) -> Result<Option<ChargedCounter>, OverRate> {
        let issuer = CountedIssuer::named(iss);
        match self.shared.charge(counters, issuer).await? {
            SharedCharge::Shared { issuer, window } => Ok(Some(ChargedCounter::Shared { issuer, window })),
            SharedCharge::Local => {
                let charged = self.meter(issuer).map(|meter| meter.charge(RateBucket::Issuer(issuer)));
                charged.transpose().map(|charged| charged.map(|_| ChargedCounter::Local(issuer)))
            }
            SharedCharge::NoLimit => Ok(None),
        }
    }

    /// The meter of an issuer that is counted by this process alone.
    fn meter(&self, issuer: CountedIssuer) -> Option<&RateMeter> {
        self.local.get(&self.rates().of(issuer)?)
    }

    async fn refund(&self, charge: ChargedCounter) {
        match charge {
            ChargedCounter::Shared { issuer, window } => self.shared.refund(issuer, window).await,
            ChargedCounter::Local(issuer) => {
                if let Some(meter) = self.meter(issuer) {
                    meter.refund(RateBucket::Issuer(issuer));
                }
            }
        }
    }
}

/// The counter that one registration was charged to.
#[derive(Clone, Copy, Debug)]
enum ChargedCounter {
    Shared { issuer: CountedIssuer, window: u64 },
    Local(CountedIssuer),
}

/// The charge of one request to its issuer: one registration, however often it is decided.
pub struct IssuerCharge {
    quota: Option<Arc<IssuerQuota>>,
    charge: Option<ChargedCounter>,
}

impl IssuerCharge {
    /// Creates an uncharged bill; with `None` nothing is ever charged.
    pub fn at(quota: Option<Arc<IssuerQuota>>) -> Self {
        Self { quota, charge: None }
    }

    /// Returns `true` if issuers have a quota.
    pub fn counts(&self) -> bool {
        self.quota.is_some()
    }

    /// Turns charging off for this request.
    pub fn waive(&mut self) {
        self.quota = None;
    }

    /// Returns `true` if the issuer has been charged.
    pub fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// Charges the issuer, unless this bill is charged already.
    pub async fn charge(&mut self, counters: &dyn QuotaStore, iss: &str) -> Result<(), OverRate> {
        if let (Some(quota), None) = (&self.quota, &self.charge) {
            self.charge = quota.charge(counters, iss).await?;
        }
        Ok(())
    }

    /// Refunds the charge, if there is one.
    pub async fn refund(&mut self) {
        if let (Some(quota), Some(charge)) = (&self.quota, self.charge.take()) {
            quota.refund(charge).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use store::quota::Counters;
    use store::{Quotas, ServerChecks, StoreError};

    use super::*;
    use crate::limits::{Limits, QUOTA_RETRY};

    /// The counters of a database that becomes unavailable and available again.
    #[derive(Default)]
    struct Database {
        counters: Counters,
        away: AtomicBool,
    }

    #[async_trait::async_trait]
    impl Quotas for Database {
        async fn take_quota(
            &self,
            name: &str,
            window: u64,
            limit: u64,
            want: u64,
        ) -> Result<u64, StoreError> {
            match self.away.load(Ordering::Relaxed) {
                true => Err(StoreError::Unavailable("away".into())),
                false => self.counters.take(name, window, limit, want),
            }
        }

        async fn trim_quotas(&self, keep: Range<u64>) -> Result<u64, StoreError> {
            Ok(self.counters.trim(keep))
        }
    }

    #[async_trait::async_trait]
    impl ServerChecks for Database {
        async fn check_durability(&self) -> Result<(), StoreError> {
            Ok(())
        }
    }

    /// So many an hour: a window in which no test ends.
    fn hourly(requests: u32) -> Rate {
        Rate { period: Duration::from_secs(3600), ..Rate::per_second(requests, requests) }
    }

    /// A quota per hour: no test outlasts its window.
    fn quota(requests: u32) -> Arc<IssuerQuota> {
        let rate = hourly(requests);
        IssuerQuota::at(IssuerRates::from(&Limits { issuer: Some(rate), ..Limits::default() })).unwrap()
    }

    async fn charged(quota: &Arc<IssuerQuota>, database: &Database) -> Result<IssuerCharge, OverRate> {
        let mut issuer_charge = IssuerCharge::at(Some(quota.clone()));
        issuer_charge.charge(database, "a").await.map(|()| issuer_charge)
    }

    #[tokio::test]
    async fn a_bill_is_charged_once_and_given_back_once() {
        let (quota, database) = (quota(2), Database::default());
        let mut issuer_charge = charged(&quota, &database).await.unwrap();
        issuer_charge.charge(&database, "a").await.unwrap();
        issuer_charge.refund().await;
        issuer_charge.refund().await;
        assert!(charged(&quota, &database).await.is_ok());
        assert!(charged(&quota, &database).await.is_ok());
        assert!(charged(&quota, &database).await.is_err());
    }

    #[tokio::test]
    async fn what_was_counted_alone_is_not_given_back_to_the_count_of_all() {
        let (quota, database) = (quota(1), Database::default());
        database.away.store(true, Ordering::Relaxed);
        let mut local = charged(&quota, &database).await.unwrap();
        database.away.store(false, Ordering::Relaxed);
        tokio::time::sleep(QUOTA_RETRY).await;
        assert!(charged(&quota, &database).await.is_ok(), "the one of the window");
        local.refund().await;
        assert!(charged(&quota, &database).await.is_err(), "it was not of this count");
        database.away.store(true, Ordering::Relaxed);
        let issuer = CountedIssuer::named("a");
        let meter = quota.meter(issuer).unwrap();
        assert!(meter.charge(RateBucket::Issuer(issuer)).is_ok(), "it was of that one");
        assert!(meter.charge(RateBucket::Issuer(issuer)).is_err());
    }

    #[tokio::test]
    async fn without_the_database_an_issuer_that_is_named_keeps_its_own_rate() {
        let named = [("a".to_owned(), hourly(2))].into();
        let limits = Limits { issuer: Some(hourly(1)), named_issuers: named, ..Limits::default() };
        let quota = IssuerQuota::at(IssuerRates::from(&limits)).unwrap();
        let database = Database { away: AtomicBool::new(true), ..Database::default() };
        let charge = async |iss| quota.charge(&database, iss).await;
        assert!(charge("a").await.is_ok() && charge("a").await.is_ok());
        assert_eq!(charge("a").await.unwrap_err().rate, hourly(2));
        assert!(charge("b").await.is_ok());
        assert_eq!(charge("b").await.unwrap_err().rate, hourly(1));
    }

    #[test]
    fn where_no_issuer_has_a_rate_there_is_no_door() {
        assert!(IssuerQuota::at(IssuerRates::from(&Limits::default())).is_none());
    }

    #[tokio::test]
    async fn without_a_door_nothing_is_charged() {
        let database = Database::default();
        for mut issuer_charge in [IssuerCharge::at(None), IssuerCharge::at(Some(quota(1)))] {
            issuer_charge.waive();
            issuer_charge.charge(&database, "a").await.unwrap();
            assert!(!issuer_charge.is_charged() && !issuer_charge.counts());
        }
    }
}
