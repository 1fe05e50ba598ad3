//! The decision writer: the single task that makes each decision durable before the first byte goes to an upstream.
//!
//! A caller hands in a job and awaits the answer. The writer takes all queued jobs, decides each on a copy of its
//! session, writes and signs a record of it, and commits records, sessions and outbox in one transaction; only then are
//! the callers answered. The outcome of a call is settled in the same way; its caller waits only if the call
//! cost more than was reserved. Afterwards the outbox delivers every statement to the log.
//!
//! | file | contents |
//! |---|---|
//! | `asking` | the requests of `calls` to the writer |
//! | `jobs`, `told`, `pass`, `held` | jobs and their answers |
//! | `place` | the bound on queued decisions |
//! | `writer` | the loop of transactions |
//! | `decisions` | the jobs that are decided in them |
//! | `client_streams` | record streams of clients without VAP |
//! | `denials`, `strangers` | denials without a record of their own |
//! | `questions` | questions that wait for approvers outside of the client |
//! | `scopes` | a caller's scopes, for display |
//! | `tools` | pinned tools |
//! | `annex` | data kept in clear next to a record, and its bounds |
//! | `notary`, `published` | statements, and the Verdict keys on the log |
//! | `outbox` | delivery to the log, and its backlog |
//! | `recovery`, `upkeep` | recovery after a dead process, and periodic work |
//!
//! Not here: admission rules (`admission`), storage of evidence (`evidence`), and the MCP answers (`calls`).

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

/// Looks up the rules of a route by its path; `None` if the route is gone. Called when a message is decided, not when
/// it arrives: one that waited for a person, the judge or another call is decided under the configuration, keys and
/// revocations then in force.
pub type RulesOf = Arc<dyn Fn(&str) -> Option<Arc<Rules>> + Send + Sync>;

/// A handle to the decision writer. Clones share one writer.
#[derive(Clone)]
pub struct Desk {
    inner: Arc<Inner>,
}

struct Inner {
    house: Arc<House>,
    jobs: mpsc::UnboundedSender<Job>,
    /// Decisions that were requested and are not made yet.
    queue: Queue,
    gauge: Arc<Gauge>,
    alarms: Arc<Alarms>,
    waiting: Arc<Waiting>,
    denials: Denials,
    client_streams: ClientStreams,
    questions: Questions,
    store: Arc<dyn EvidenceStore>,
    rules: RulesOf,
    /// Tasks that have a job to hand in before the writer may stop.
    owing: TaskTracker,
}

/// The background tasks of a [`Desk`], until [`stop`](Self::stop).
pub struct Running {
    stop_writer: CancellationToken,
    stop_others: CancellationToken,
    writer: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
    desk: Desk,
}

impl Desk {
    /// Opens the decision writer over a store: checks the store's durability, settles the calls that a dead process
    /// left open, registers the Verdict keys if they changed, and starts the delivery to the log.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not guarantee durable commits, or does not answer.
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

    /// Returns the current counters and faults.
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

    /// Returns the current rules of a route. For a route that is gone they are `Rules::of_nothing`, which admits
    /// nothing.
    pub(crate) fn rules_of(&self, route: &str) -> Arc<Rules> {
        (self.inner.rules)(route)
            .unwrap_or_else(|| Arc::new(Rules::of_nothing(route, self.inner.house.notary.issuer())))
    }

    fn questions(&self) -> &Questions {
        &self.inner.questions
    }

    pub(crate) fn now(&self) -> jiff::Timestamp {
        decisions::timestamp(self.inner.house.clock.milliseconds())
    }

    /// Returns the name of the stream for records that belong to no session.
    pub(crate) fn unbound(&self) -> &str {
        &self.inner.house.unbound
    }

    /// Counts a denial that has no record of its own, in `stream` or, without one, in the gateway's own stream.
    fn count_denial(&self, stream: Option<&str>, reason: Reason) {
        let own = self.unbound();
        let now = self.inner.house.clock.milliseconds();
        self.inner.denials.count(stream.unwrap_or(own), own, reason, now);
    }

    /// Hands in a [`DenialsWork`] for each stream with counted denials.
    fn record_denials(&self) {
        for (stream, counted) in self.inner.denials.take() {
            self.hand_in(Box::new(DenialsWork::new(self.clone(), stream, counted)));
        }
    }

    /// Hands a job to the writer. If the writer has stopped, the job fails with [`DeskError::Stopping`].
    fn hand_in(&self, job: Job) {
        if let Err(unsent) = self.inner.jobs.send(job) {
            unsent.0.failed(&DeskError::Stopping);
        }
    }

    /// Spawns a task that has a job to hand in; [`Running::stop`] waits for it.
    fn owe(&self, owed: impl Future<Output = ()> + Send + 'static) {
        self.inner.owing.spawn(owed);
    }
}

impl Running {
    /// Stops the tasks after all jobs handed in so far are written. The stream of this instance is closed unless it has
    /// a call in flight, and records that the log lacks are sent after the next start.
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
            // A panic of a task is logged where it happens.
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
