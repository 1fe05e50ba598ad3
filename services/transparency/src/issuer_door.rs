//! The door of issuers: what each may register, charged to the one whose signature was verified.
//!
//! A charge knows where it was counted (by all processes together, or by this one alone while the database was away;
//! in which window) and is given back there and nowhere else. It is given back when the registration failed through a
//! fault of ours, and when the statement was here before: anyone may hand in again what is public, at nobody's cost.
//!
//! Not here: the counting (`issuer_quota`, `doors`), and what a registration came to (`log`).

use std::sync::Arc;

use store::Quotas;

use crate::doors::{Bucket, Meter, OverRate};
use crate::issuer_quota::{Charged, Issuer, IssuerQuota};
use crate::limits::Rate;

/// The quota of issuers: counted by all processes, or by this one while the database is away.
pub struct IssuerDoor {
    together: IssuerQuota,
    alone: Meter,
}

impl IssuerDoor {
    /// A door at this rate.
    pub fn new(rate: Rate) -> Self {
        Self { together: IssuerQuota::new(rate), alone: Meter::new("issuer", rate) }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.together.rate()
    }

    /// Forgets issuers that have not registered for a while.
    pub async fn sweep(&self, counters: &dyn Quotas) {
        self.alone.sweep();
        self.together.sweep(counters).await;
    }

    async fn charge(&self, counters: &dyn Quotas, iss: &str) -> Result<Charge, OverRate> {
        let issuer = Issuer::named(iss);
        match self.together.charge(counters, issuer).await? {
            Charged::Together { issuer, window } => Ok(Charge::Together { issuer, window }),
            Charged::Alone => {
                let bucket = Bucket::Issuer(issuer);
                self.alone.charge(bucket).map(|_| Charge::Alone(bucket))
            }
        }
    }

    async fn give_back(&self, charge: Charge) {
        match charge {
            Charge::Together { issuer, window } => self.together.give_back(issuer, window).await,
            Charge::Alone(bucket) => self.alone.give_back(bucket),
        }
    }
}

/// Where one registration was counted.
#[derive(Clone, Copy, Debug)]
enum Charge {
    Together { issuer: Issuer, window: u64 },
    Alone(Bucket),
}

/// What one request costs its issuer: one registration, however often it is decided.
pub struct Bill {
    door: Option<Arc<IssuerDoor>>,
    charge: Option<Charge>,
}

impl Bill {
    /// A bill at this door; without a door nothing is charged.
    pub fn at(door: Option<Arc<IssuerDoor>>) -> Self {
        Self { door, charge: None }
    }

    /// Whether issuers are charged at all.
    pub fn counts(&self) -> bool {
        self.door.is_some()
    }

    /// Charges nothing from now on.
    pub fn waive(&mut self) {
        self.door = None;
    }

    /// Whether the issuer has been charged.
    pub fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// Charges the issuer, unless it has been.
    pub async fn charge(&mut self, counters: &dyn Quotas, iss: &str) -> Result<(), OverRate> {
        if let (Some(door), None) = (&self.door, &self.charge) {
            self.charge = Some(door.charge(counters, iss).await?);
        }
        Ok(())
    }

    /// Gives back what was charged.
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
    use crate::limits::QUOTA_RETRY;

    /// The counters of a database that goes away and comes back.
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
    fn door(requests: u32) -> Arc<IssuerDoor> {
        let rate = Rate { period: Duration::from_secs(3600), ..Rate::per_second(requests, requests) };
        Arc::new(IssuerDoor::new(rate))
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
        assert!(door.alone.charge(Bucket::Issuer(Issuer::named("a"))).is_ok(), "it was of that one");
        assert!(door.alone.charge(Bucket::Issuer(Issuer::named("a"))).is_err());
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
