//! The desk: the one writer, which makes a decision durable before the first byte goes to an upstream.
//!
//! Whoever wants something decided hands in a job and waits. The writer takes all that queued, decides each on a copy of
//! its session, writes and signs a record of it, and commits records, sessions and outbox in one transaction; only then is
//! anybody answered. What comes of a call is settled the same way, with nobody waiting unless it cost more than
//! was reserved. Afterwards the outbox brings every statement to the log.
//!
//! | file | what |
//! |---|---|
//! | `asking` | what `calls` asks the desk |
//! | `jobs`, `told`, `pass`, `held` | what goes in, and what comes back |
//! | `place` | how much may queue |
//! | `writer` | the one transaction after the other |
//! | `decisions` | what is decided in them |
//! | `client_streams` | where records of clients without VAP are |
//! | `denials`, `strangers` | what is denied without a record of its own |
//! | `denials` | what is denied without a record of its own |
//! | `questions` | what waits for approvers outside of the client |
//! | `scopes` | what a caller may call, for showing |
//! | `tools` | what is pinned of tools |
//! | `annex` | what is kept in clear beside a record, and how much |
//! | `notary`, `published` | statements, and the keys on the log |
//! | `outbox` | to the log, and how much waits for it |
//! | `recovery`, `upkeep` | what a process that died left, and what is due |
//!
//! Not here: what is admitted (`admission`), how evidence is kept (`evidence`), and what travels in an answer (`calls`).

mod annex;
mod asking;
mod client_streams;
mod clock;
mod decisions;
mod denials;
mod error;
mod held;
mod house;
mod jobs;
mod notary;
mod outbox;
mod pass;
mod place;
mod published;
mod questions;
mod recovery;
mod scopes;
mod settings;
mod shelf;
pub(crate) mod states;
mod status;
mod strangers;
mod told;
mod tools;
mod upkeep;
mod writer;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use admission::reason::Reason;
use admission::rules::Rules;
use evidence::{EvidenceStore, StoreError};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use clock::Clock;
pub use error::DeskError;
pub use held::{HeldCall, HeldMessage};
pub use jobs::{CallAnswer, CallJob, MessageAnswer, MessageJob, RefusalJob, ShownState};
pub use notary::Keys;
pub use outbox::{Backpressure, Log, NoReceipt, OutboxLimits};
pub use pass::{Came, Pass};
pub use questions::{NotAnswered, Standing};
pub use settings::Settings;
pub use states::KeptQuestion;
pub use status::Status;
pub use told::{Evidence, Told};

use client_streams::ClientStreams;
use decisions::DenialsWork;
use denials::Denials;
use house::House;
use notary::Notary;
use outbox::{Courier, Gauge, Waiting};
use place::Queue;
use questions::Questions;
use status::Alarms;
use writer::{Job, Writer};

use crate::limits::SUBMIT_LINGER;

/// The rules of a route as they are now, by its path. They are asked for when something is decided, not when it came: what
/// was held for a person, the judge or another call meanwhile is decided under the configuration, keys and revocations in force.
pub type RulesOf = Arc<dyn Fn(&str) -> Option<Arc<Rules>> + Send + Sync>;

/// The desk. Clones share it.
#[derive(Clone)]
pub struct Desk {
    inner: Arc<Inner>,
}

struct Inner {
    house: Arc<House>,
    jobs: mpsc::UnboundedSender<Job>,
    /// Decisions that are asked for and not made.
    queue: Queue,
    gauge: Arc<Gauge>,
    alarms: Arc<Alarms>,
    waiting: Arc<Waiting>,
    denials: Denials,
    client_streams: ClientStreams,
    questions: Questions,
    store: Arc<dyn EvidenceStore>,
    rules: RulesOf,
    /// What is owed and not handed in yet.
    owing: TaskTracker,
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
    /// Opens the desk over a store: checks that it keeps what it promises, settles what a process that died left, says the
    /// keys if they changed, and begins to bring to the log what waits.
    ///
    /// # Errors
    /// If the database would forget what it acknowledged, or does not answer.
    pub async fn open(
        store: Arc<dyn EvidenceStore>,
        keys: &Keys,
        log: Log,
        clock: Clock,
        settings: Settings,
        rules: RulesOf,
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
        let (wake, (jobs, handed_in)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
        let writer = Writer::new(
            house.clone(),
            store.clone(),
            (gauge.clone(), alarms.clone(), wake.clone()),
            handed_in,
        );
        let courier = Courier {
            store: store.clone(),
            log,
            gauge: gauge.clone(),
            waiting: waiting.clone(),
            alarms: alarms.clone(),
            clock,
            wake,
            batches: AtomicBool::new(true),
            linger: if house.settings.receipt_required { Duration::ZERO } else { SUBMIT_LINGER },
        };
        let (queue, owing) = (Queue::default(), TaskTracker::new());
        let desk = Self {
            inner: Arc::new(Inner {
                house,
                jobs,
                queue,
                gauge,
                alarms,
                waiting,
                denials: Denials::default(),
                client_streams: ClientStreams::default(),
                questions: Questions::default(),
                store,
                rules,
                owing,
            }),
        };
        let (stop_writer, stop_others) = (CancellationToken::new(), CancellationToken::new());
        let mut running = Running {
            writer: tokio::spawn(writer.run(stop_writer.clone())),
            others: vec![tokio::spawn(courier.run(stop_others.clone()))],
            stop_writer,
            stop_others: stop_others.clone(),
            desk: desk.clone(),
        };
        desk.recover().await;
        desk.publish(&keys.jwk_set).await;
        running.others.push(tokio::spawn(upkeep::run(desk.clone(), stop_others)));
        Ok((desk, running))
    }

    /// How the desk stands.
    pub fn status(&self) -> Status {
        let Inner { house, gauge, alarms, .. } = &*self.inner;
        let (now, limits) = (house.clock.seconds(), &house.settings.outbox);
        let backlog = gauge.backlog();
        let mut status = alarms.status();
        if self.inner.jobs.is_closed() {
            status.store_failing.get_or_insert_with(|| "nobody writes any more".to_owned());
        }
        Status {
            open_questions: self.inner.questions.count(self.now().as_second()),
            oldest_age: backlog.oldest_at.map_or(0, |oldest| now.saturating_sub(oldest)),
            outbox_share: gauge.share(limits, now),
            backpressure: gauge.over(limits, now).map(|over| over.to_string()),
            backlog,
            ..status
        }
    }

    /// The rules of a route as they are now. On a route that is gone nothing is admitted any more.
    pub(crate) fn rules_of(&self, route: &str) -> Arc<Rules> {
        (self.inner.rules)(route)
            .unwrap_or_else(|| Arc::new(Rules::of_nothing(route, self.inner.house.notary.issuer())))
    }

    /// The questions that this process put to approvers.
    fn questions(&self) -> &Questions {
        &self.inner.questions
    }

    /// What time it is.
    pub(crate) fn now(&self) -> jiff::Timestamp {
        decisions::timestamp(self.inner.house.clock.milliseconds())
    }

    /// The stream of what belongs to no session.
    pub(crate) fn unbound(&self) -> &str {
        &self.inner.house.unbound
    }

    /// Counts a denial that has no record of its own; without a stream, in the one of what belongs to no session.
    fn count_denial(&self, stream: Option<&str>, reason: Reason) {
        let own = self.unbound();
        let now = self.inner.house.clock.milliseconds();
        self.inner.denials.count(stream.unwrap_or(own), own, reason, now);
    }

    /// Records how many denials had no record of their own.
    fn record_denials(&self) {
        for (stream, counted) in self.inner.denials.take() {
            self.hand_in(Box::new(DenialsWork::new(self.clone(), stream, counted)));
        }
    }

    /// A job for the writer; it is told if there is no writer any more.
    fn hand_in(&self, job: Job) {
        if let Err(unsent) = self.inner.jobs.send(job) {
            unsent.0.failed(&DeskError::Stopping);
        }
    }

    /// Something that has to be handed in before the desk may stop.
    fn owe(&self, owed: impl Future<Output = ()> + Send + 'static) {
        self.inner.owing.spawn(owed);
    }
}

impl Running {
    /// Ends it: what was handed in is still written, the stream of this instance is ended unless a call of it is still
    /// under way, and what waits for the log is there at the next start.
    pub async fn stop(self) {
        self.desk.inner.owing.close();
        self.desk.inner.owing.wait().await;
        if !self.desk.inner.alarms.is_doubting() {
            self.desk.record_denials();
            self.desk.end_client_streams().await;
            self.desk.end_unbound().await;
        }
        self.stop_others.cancel();
        for other in self.others {
            // A task that panicked has said so.
            let _ = other.await;
        }
        self.stop_writer.cancel();
        let _ = self.writer.await;
        if let Err(error) = self.desk.inner.store.leave().await {
            tracing::warn!(%error, "the instance is not signed off; what it left open waits for its lease to end");
        }
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("instance", &self.inner.house.instance).finish_non_exhaustive()
    }
}
