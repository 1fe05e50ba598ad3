//! The desk: the one writer, which makes a decision durable before the first byte goes to an upstream.
//!
//! Whoever wants something decided hands in a job and waits. The writer takes all that queued, decides each on a copy of
//! its session, writes and signs a record of it, and commits records, sessions and outbox in one transaction; only then is
//! anybody answered. What comes of a call is settled the same way, with nobody waiting unless it cost more than
//! was reserved. Afterwards the outbox brings every statement to the log.
//!
//! Not here: what is admitted (`admission`), how evidence is kept (`evidence`), and what travels in an answer (`calls`).

mod clock;
mod error;
mod house;
mod notary;
mod outbox;
mod published;
mod settings;
mod states;
mod status;
mod upkeep;
mod writer;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use evidence::{EvidenceStore, StoreError};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use clock::Clock;
pub use error::DeskError;
pub use notary::Keys;
pub use outbox::{Backpressure, Log, NoReceipt, OutboxLimits};
pub use settings::Settings;
pub use status::Status;

use house::House;
use notary::Notary;
use outbox::{Courier, Gauge, Waiting};
use published::PublishKeys;
use status::Alarms;
use writer::{Job, Writer};

/// The desk. Clones share it.
#[derive(Clone)]
pub struct Desk {
    inner: Arc<Inner>,
}

struct Inner {
    house: Arc<House>,
    jobs: mpsc::UnboundedSender<Job>,
    gauge: Arc<Gauge>,
    alarms: Arc<Alarms>,
    waiting: Arc<Waiting>,
    store: Arc<dyn EvidenceStore>,
}

/// What runs for the desk until it is stopped.
pub struct Running {
    stop_writer: CancellationToken,
    stop_others: CancellationToken,
    writer: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
    desk: Desk,
}

impl Desk {
    /// Opens the desk over a store: checks that it keeps what it promises, says the keys if they changed, and begins to
    /// bring to the log what waits.
    ///
    /// # Errors
    /// If the database would forget what it acknowledged, or does not answer.
    pub async fn open(
        store: Arc<dyn EvidenceStore>,
        keys: &Keys,
        log: Log,
        clock: Clock,
        settings: Settings,
    ) -> Result<(Self, Running), StoreError> {
        store.check_durability().await?;
        let house = Arc::new(House {
            notary: Notary::new(keys.evidence.clone(), &settings.issuer, &log.url),
            verdict: keys.verdict.clone(),
            clock: clock.clone(),
            unbound: format!("{}{}", admission::message::UNBOUND, store.instance()),
            instance: store.instance().to_owned(),
            settings,
        });
        let (gauge, alarms, waiting): (Arc<Gauge>, Arc<Alarms>, Arc<Waiting>) = Default::default();
        gauge.set(store.backlog().await?);
        let (wake, (jobs, queue)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
        let parts = (gauge.clone(), alarms.clone(), wake.clone());
        let writer = Writer::new(house.clone(), store.clone(), parts, queue);
        let courier = Courier {
            store: store.clone(),
            log,
            gauge: gauge.clone(),
            waiting: waiting.clone(),
            alarms: alarms.clone(),
            clock,
            wake,
            batches: AtomicBool::new(true),
        };
        let desk = Self { inner: Arc::new(Inner { house, jobs, gauge, alarms, waiting, store }) };
        let (stop_writer, stop_others) = (CancellationToken::new(), CancellationToken::new());
        let running = Running {
            writer: tokio::spawn(writer.run(stop_writer.clone())),
            others: vec![
                tokio::spawn(courier.run(stop_others.clone())),
                tokio::spawn(upkeep::run(desk.clone(), stop_others.clone())),
            ],
            stop_writer,
            stop_others,
            desk: desk.clone(),
        };
        desk.publish(&keys.jwk_set).await;
        Ok((desk, running))
    }

    /// How the desk stands.
    pub fn status(&self) -> Status {
        let Inner { house, gauge, alarms, .. } = &*self.inner;
        let (now, limits) = (house.clock.seconds(), &house.settings.outbox);
        let backlog = gauge.backlog();
        Status {
            oldest_age: backlog.oldest_at.map_or(0, |oldest| now.saturating_sub(oldest)),
            outbox_share: gauge.share(limits, now),
            backpressure: gauge.over(limits, now).map(|over| over.to_string()),
            backlog,
            ..alarms.status()
        }
    }

    /// Says the keys, if they are not those that were said last. A gateway whose disk is full still starts: it denies.
    pub async fn publish(&self, jwk_set: &serde_json::Value) -> bool {
        let (job, told) = PublishKeys::job(jwk_set);
        self.hand_in(job);
        match told.await {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => {
                tracing::error!(%error, "the gateway's keys could not be recorded");
                false
            }
            Err(_) => false,
        }
    }

    /// A job for the writer; it is told if there is no writer any more.
    fn hand_in(&self, job: Job) {
        if let Err(unsent) = self.inner.jobs.send(job) {
            unsent.0.failed(&DeskError::Stopping);
        }
    }
}

impl Running {
    /// Ends it: what was handed in is still written, and what waits for the log is there at the next start.
    pub async fn stop(self) {
        self.stop_others.cancel();
        for other in self.others {
            // A task that panicked has said so.
            let _ = other.await;
        }
        self.stop_writer.cancel();
        let _ = self.writer.await;
        if let Err(error) = self.desk.inner.store.leave().await {
            tracing::warn!(%error, "the instance could not be signed off; what it left open waits for its lease to end");
        }
    }
}
