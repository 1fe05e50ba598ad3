//! The quota of issuers: a registration is charged to the issuer whose signature was verified.
//!
//! A charge records its counter (the shared one of all processes, or this process's own while the database is
//! unavailable) and its window, and is refunded there only. It is refunded if the service failed, or if the statement
//! was registered before: resubmitting a registered statement is not charged to the issuer's quota.
//!
//! Not here: the counters (`issuer_quota`, `doors`), and the outcome of a registration (`log`).

use std::collections::HashMap;
use std::sync::Arc;

use store::Quotas;

use crate::doors::{Bucket, Meter, OverRate};
use crate::issuer_quota::{Charged, Issuer, IssuerQuota, IssuerRates};
use crate::limits::Rate;

/// The quota of issuers: counted for all processes, or by this one while the database is unavailable.
pub struct IssuerDoor {
    together: IssuerQuota,
    alone: HashMap<Rate, Meter>,
}

impl IssuerDoor {
    /// A door at these rates; `None` if no issuer has one.
    pub fn at(rates: IssuerRates) -> Option<Arc<Self>> {
        let alone: HashMap<Rate, Meter> =
            rates.all().map(|rate| (rate, Meter::new("issuer", rate))).collect();
        (!alone.is_empty()).then(|| Arc::new(Self { together: IssuerQuota::new(rates), alone }))
    }

    /// The rates.
    pub fn rates(&self) -> &IssuerRates {
        self.together.rates()
    }

    /// Removes the counters of issuers without recent registrations.
    pub async fn sweep(&self, counters: &dyn Quotas) {
        self.alone.values().for_each(Meter::sweep);
        self.together.sweep(counters).await;
    }

    /// Charges an issuer; `None` if it has no limit.
    async fn charge(&self, counters: &dyn Quotas, iss: &str) -> Result<Option<Charge>, OverRate> {
        let issuer = Issuer::named(iss);
        match self.together.charge(counters, issuer).await? {
            Charged::Together { issuer, window } => Ok(Some(Charge::Together { issuer, window })),
            Charged::Alone => {
                let charged = self.meter(issuer).map(|meter| meter.charge(Bucket::Issuer(issuer)));
                charged.transpose().map(|charged| charged.map(|_| Charge::Alone(issuer)))
            }
            Charged::NoLimit => Ok(None),
        }
    }

    /// The meter of an issuer that is counted by this process alone.
    fn meter(&self, issuer: Issuer) -> Option<&Meter> {
        self.alone.get(&self.rates().of(issuer)?)
    }

    async fn give_back(&self, charge: Charge) {
        match charge {
            Charge::Together { issuer, window } => self.together.give_back(issuer, window).await,
            Charge::Alone(issuer) => {
                if let Some(meter) = self.meter(issuer) {
                    meter.give_back(Bucket::Issuer(issuer));
                }
            }
        }
    }
}

/// The counter that one registration was charged to.
#[derive(Clone, Copy, Debug)]
enum Charge {
    Together { issuer: Issuer, window: u64 },
    Alone(Issuer),
}

/// The charge of one request to its issuer: one registration, however often it is decided.
pub struct Bill {
    door: Option<Arc<IssuerDoor>>,
    charge: Option<Charge>,
}

impl Bill {
    /// Creates an uncharged bill; with `None` nothing is ever charged.
    pub fn at(door: Option<Arc<IssuerDoor>>) -> Self {
        Self { door, charge: None }
    }

    /// Returns `true` if issuers have a quota.
    pub fn counts(&self) -> bool {
        self.door.is_some()
    }

    /// Turns charging off for this request.
    pub fn waive(&mut self) {
        self.door = None;
    }

    /// Returns `true` if the issuer has been charged.
    pub fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// Charges the issuer, unless this bill is charged already.
    pub async fn charge(&mut self, counters: &dyn Quotas, iss: &str) -> Result<(), OverRate> {
        if let (Some(door), None) = (&self.door, &self.charge) {
            self.charge = door.charge(counters, iss).await?;
        }
        Ok(())
    }

    /// Refunds the charge, if there is one.
    pub async fn give_back(&mut self) {
        if let (Some(door), Some(charge)) = (&self.door, self.charge.take()) {
            door.give_back(charge).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use store::StoreError;
    use store::quota::Counters;

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

        async fn trim_quotas(&self, before: u64) -> Result<u64, StoreError> {
            Ok(self.counters.trim(before))
        }
    }

    /// So many an hour: a window in which no test ends.
    fn hourly(requests: u32) -> Rate {
        Rate { period: Duration::from_secs(3600), ..Rate::per_second(requests, requests) }
    }

    /// A quota per hour: no test outlasts its window.
    fn door(requests: u32) -> Arc<IssuerDoor> {
        let rate = hourly(requests);
        IssuerDoor::at(IssuerRates::from(&Limits { issuer: Some(rate), ..Limits::default() })).unwrap()
    }

    async fn charged(door: &Arc<IssuerDoor>, database: &Database) -> Result<Bill, OverRate> {
        let mut bill = Bill::at(Some(door.clone()));
        bill.charge(database, "a").await.map(|()| bill)
    }

    #[tokio::test]
    async fn a_bill_is_charged_once_and_given_back_once() {
        let (door, database) = (door(2), Database::default());
        let mut bill = charged(&door, &database).await.unwrap();
        bill.charge(&database, "a").await.unwrap();
        bill.give_back().await;
        bill.give_back().await;
        assert!(charged(&door, &database).await.is_ok());
        assert!(charged(&door, &database).await.is_ok());
        assert!(charged(&door, &database).await.is_err());
    }

    #[tokio::test]
    async fn what_was_counted_alone_is_not_given_back_to_the_count_of_all() {
        let (door, database) = (door(1), Database::default());
        database.away.store(true, Ordering::Relaxed);
        let mut alone = charged(&door, &database).await.unwrap();
        database.away.store(false, Ordering::Relaxed);
        tokio::time::sleep(QUOTA_RETRY).await;
        assert!(charged(&door, &database).await.is_ok(), "the one of the window");
        alone.give_back().await;
        assert!(charged(&door, &database).await.is_err(), "it was not of this count");
        database.away.store(true, Ordering::Relaxed);
        let issuer = Issuer::named("a");
        let meter = door.meter(issuer).unwrap();
        assert!(meter.charge(Bucket::Issuer(issuer)).is_ok(), "it was of that one");
        assert!(meter.charge(Bucket::Issuer(issuer)).is_err());
    }

    #[tokio::test]
    async fn without_the_database_an_issuer_that_is_named_keeps_its_own_rate() {
        let named = [("a".to_owned(), hourly(2))].into();
        let limits = Limits { issuer: Some(hourly(1)), named_issuers: named, ..Limits::default() };
        let door = IssuerDoor::at(IssuerRates::from(&limits)).unwrap();
        let database = Database { away: AtomicBool::new(true), ..Database::default() };
        let charge = async |iss| door.charge(&database, iss).await;
        assert!(charge("a").await.is_ok() && charge("a").await.is_ok());
        assert_eq!(charge("a").await.unwrap_err().rate, hourly(2));
        assert!(charge("b").await.is_ok());
        assert_eq!(charge("b").await.unwrap_err().rate, hourly(1));
    }

    #[test]
    fn where_no_issuer_has_a_rate_there_is_no_door() {
        assert!(IssuerDoor::at(IssuerRates::from(&Limits::default())).is_none());
    }

    #[tokio::test]
    async fn without_a_door_nothing_is_charged() {
        let database = Database::default();
        for mut bill in [Bill::at(None), Bill::at(Some(door(1)))] {
            bill.waive();
            bill.charge(&database, "a").await.unwrap();
            assert!(!bill.is_charged() && !bill.counts());
        }
    }
}
