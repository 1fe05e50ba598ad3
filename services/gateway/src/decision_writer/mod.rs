//! The decision writer: the single task that makes each decision durable before the first byte goes to an upstream.
//!
//! A caller hands in a job and awaits the answer. The writer takes all queued jobs, decides each on a copy of its
//! session, writes and signs a record of it, and commits records, sessions and outbox in one transaction; only then are
//! the callers answered. The outcome of a call is settled in the same way; its caller waits only if the call
//! cost more than was reserved. Afterwards the outbox delivers every statement to the log.
//!
//! | file | contents |
//! |---|---|
//! | `requests` | the requests of `calls` to the writer |
//! | `jobs` | the jobs that they hand in |
//! | `committed_stream`, `recent_reads` | streams as the database has them, and those read lately |
//! | `queue` | the bound on queued decisions |
//! | `transactions` | the loop of transactions |
//! | `decisions` | the decisions made in them, and their answers |
//! | `client_streams` | record streams of clients without VAP |
//! | `denial_counts` | denials without a record of their own |
//! | `questions` | questions that wait for approvers outside of the client |
//! | `scopes` | a caller's scopes, for display |
//! | `tools` | pinned tools |
//! | `record_signer`, `published` | statements, and the Verdict keys on the log |
//! | `record_outbox` | the records that wait for the log, as the crate `outbox` delivers them |
//! | `backlog` | the records that wait for the log, and their limits |
//! | `clock`, `clock_difference` | the time of decisions, and its difference from the time of the database's server |
//! | `recovery`, `upkeep` | recovery after a dead process, and periodic work |
//!
//! Not here: admission rules (`admission`), storage of evidence (`evidence`), and the MCP answers (`calls`).

mod backlog;
mod client_streams;
mod clock;
mod clock_difference;
mod committed_stream;
mod context;
mod decisions;
mod denial_counts;
mod error;
mod jobs;
mod published;
mod questions;
mod queue;
mod recent_reads;
mod record_outbox;
mod record_signer;
mod recovery;
mod requests;
mod scopes;
mod session_cache;
mod settings;
pub(crate) mod states;
mod status;
mod tools;
mod transactions;
mod upkeep;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use admission::rules::Rules;
use evidence::{EvidenceStore, StoreError};
use outbox::Delivery;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vap::reason::Reason;

pub use backlog::{Backpressure, OutboxLimits};
pub use clock::Clock;
pub use clock_difference::ClockDifference;
pub use decisions::{
    AdmittedCall, CallAnswer, CallOutcomeReport, DecisionAnswer, HeldRequest, MessageAnswer, RecordReference,
    UndecidedCall, UndecidedMessage,
};
pub use error::{NotAnswered, WriterError};
pub use jobs::{CallJob, MessageJob, OpenedState, RefusalJob};
pub use outbox::LogConnection;
pub use questions::QuestionStatus;
pub use record_outbox::NoReceipt;
pub use record_signer::WriterKeys;
pub use settings::WriterSettings;
pub use states::StoredQuestion;
pub use status::WriterStatus;

use backlog::BacklogGauge;
use client_streams::ClientStreams;
use context::WriterContext;
use decisions::{DenialsWork, EnvelopesSinceWork};
use denial_counts::DenialCounts;
use questions::Questions;
use queue::DecisionQueue;
pub(crate) use queue::QueuedCall;
use recent_reads::RecentReads;
use record_outbox::{ReceiptWaiters, RecordOutbox};
use record_signer::RecordSigner;
use status::Alarms;
pub(crate) use transactions::EarlyRead;
use transactions::{Job, Transactions};

use crate::authority::AgentRoa;
use crate::limits::{SETTLE_TIME, SUBMIT_LINGER};

/// Looks up the rules of a route by its path; `None` if the route is gone. Called when a message is decided, not when
/// it arrives: one that waited for a person, the judge or another call is decided under the configuration, keys and
/// revocations then in force.
pub type RulesOf = Arc<dyn Fn(&str) -> Option<Arc<Rules>> + Send + Sync>;

/// A handle to the decision writer. Clones share one writer.
#[derive(Clone)]
pub struct DecisionWriter {
    inner: Arc<Inner>,
}

struct Inner {
    context: Arc<WriterContext>,
    jobs: mpsc::UnboundedSender<Job>,
    /// Decisions that were requested and are not made yet.
    queue: DecisionQueue,
    gauge: Arc<BacklogGauge>,
    alarms: Arc<Alarms>,
    waiting: Arc<ReceiptWaiters>,
    denials: DenialCounts,
    client_streams: ClientStreams,
    questions: Questions,
    store: Arc<dyn EvidenceStore>,
    rules: RulesOf,
    /// The enforcement of AgentROA, if a registry is configured.
    agent_roa: OnceLock<Arc<AgentRoa>>,
    /// Tasks that have a job to hand in before the writer may stop.
    owed_tasks: TaskTracker,
}

/// The background tasks of a [`DecisionWriter`], until [`stop`](Self::stop).
pub struct RunningWriter {
    stop_writer: CancellationToken,
    stop_others: CancellationToken,
    transactions: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
    writer: DecisionWriter,
}

impl DecisionWriter {
    /// Opens the decision writer over a store: checks the store's durability, settles the calls that a dead process
    /// left open, registers the Verdict keys if they changed, and starts the delivery to the log.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not guarantee durable commits, or does not answer.
    pub async fn open(
        store: Arc<dyn EvidenceStore>,
        keys: &WriterKeys,
        log: LogConnection,
        clock: Clock,
        settings: WriterSettings,
        rules: RulesOf,
    ) -> Result<(Self, RunningWriter), StoreError> {
        store.check_durability().await?;
        let context = Arc::new(WriterContext {
            record_signer: RecordSigner::new(keys.evidence.clone(), &settings.issuer, &log.url),
            verdict: keys.verdict.clone(),
            clock: clock.clone(),
            unbound: format!("{}{}", vap::message::UNBOUND, store.instance()),
            ended: AtomicU64::new(0),
            instance: store.instance().to_owned(),
            settings,
            recent: RecentReads::default(),
        });
        let (gauge, alarms, waiting): (Arc<BacklogGauge>, Arc<Alarms>, Arc<ReceiptWaiters>) =
            Default::default();
        gauge.set(store.backlog().await?);
        let (wake, (jobs, handed_in)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
        let transactions = Transactions::new(
            context.clone(),
            store.clone(),
            (gauge.clone(), alarms.clone(), wake.clone()),
            handed_in,
        );
        let records = RecordOutbox {
            store: store.clone(),
            gauge: gauge.clone(),
            waiting: waiting.clone(),
            alarms: alarms.clone(),
            clock: clock.clone(),
        };
        let linger = if context.settings.receipt_required { Duration::ZERO } else { SUBMIT_LINGER };
        let delivery = Delivery::new(records, log, Arc::new(move || clock.seconds()), wake, linger);
        let (queue, owed_tasks) = (DecisionQueue::default(), TaskTracker::new());
        let writer = Self {
            inner: Arc::new(Inner {
                context,
                jobs,
                queue,
                gauge,
                alarms,
                waiting,
                denials: DenialCounts::default(),
                client_streams: ClientStreams::default(),
                questions: Questions::default(),
                store,
                rules,
                agent_roa: OnceLock::new(),
                owed_tasks,
            }),
        };
        let (stop_writer, stop_others) = (CancellationToken::new(), CancellationToken::new());
        let mut running = RunningWriter {
            transactions: tokio::spawn(transactions.run(stop_writer.clone())),
            others: vec![tokio::spawn(delivery.run(stop_others.clone()))],
            stop_writer,
            stop_others: stop_others.clone(),
            writer: writer.clone(),
        };
        writer.recover().await;
        writer.publish(&keys.jwk_set).await;
        running.others.push(tokio::spawn(upkeep::run(writer.clone(), stop_others)));
        Ok((writer, running))
    }

    /// Returns the current counters and faults.
    pub fn status(&self) -> WriterStatus {
        let Inner { context, gauge, alarms, .. } = &*self.inner;
        let (now, limits) = (context.clock.seconds(), &context.settings.outbox);
        let backlog = gauge.backlog();
        let mut status = alarms.status();
        if self.inner.jobs.is_closed() {
            status.store_failing.get_or_insert_with(|| "nobody writes any more".to_owned());
        }
        WriterStatus {
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
            .unwrap_or_else(|| Arc::new(Rules::of_nothing(route, self.inner.context.record_signer.issuer())))
    }

    /// Enforces AgentROA on the routes that demand it, from the first call on. While the database does not take the time
    /// since which the uses of envelopes are stored, calls under a chain are denied.
    pub async fn enforce(&self, agent_roa: Arc<AgentRoa>) {
        let (job, durable) = EnvelopesSinceWork::job();
        self.hand_in(job);
        if !matches!(tokio::time::timeout(SETTLE_TIME, durable).await, Ok(Ok(()))) {
            tracing::error!("calls under a delegation chain are denied until the database takes writes");
        }
        self.inner.agent_roa.get_or_init(|| agent_roa);
    }

    /// Returns the enforcement of AgentROA, if a registry is configured.
    pub(crate) fn agent_roa(&self) -> Option<&Arc<AgentRoa>> {
        self.inner.agent_roa.get()
    }

    /// Returns the name of this run of the gateway.
    pub(crate) fn instance(&self) -> &str {
        &self.inner.context.instance
    }

    fn questions(&self) -> &Questions {
        &self.inner.questions
    }

    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.inner.context.clock.now()
    }

    /// Returns the name of the stream for records that belong to no session.
    pub(crate) fn unbound(&self) -> String {
        self.inner.context.own_stream()
    }

    /// Counts a denial that has no record of its own, in `stream` or, without one, in the gateway's own stream.
    fn count_denial(&self, stream: Option<&str>, reason: Reason) {
        let own = self.unbound();
        let now = self.inner.context.clock.milliseconds();
        self.inner.denials.count(stream.unwrap_or(&own), &own, reason, now);
    }

    /// Hands in a [`DenialsWork`] for each stream with counted denials.
    fn record_denials(&self) {
        for (stream, counted) in self.inner.denials.take() {
            self.hand_in(Box::new(DenialsWork::new(self.clone(), stream, counted)));
        }
    }

    /// Hands a job to the writer. If the writer has stopped, the job fails with [`WriterError::Stopping`].
    fn hand_in(&self, job: Job) {
        if let Err(unsent) = self.inner.jobs.send(job) {
            unsent.0.failed(&WriterError::Stopping);
        }
    }

    /// Spawns a task that has a job to hand in; [`RunningWriter::stop`] waits for it.
    fn spawn_owed(&self, owed: impl Future<Output = ()> + Send + 'static) {
        self.inner.owed_tasks.spawn(owed);
    }
}

impl RunningWriter {
    /// Stops the tasks after all jobs handed in so far are written. The stream of this instance is closed unless it has
    /// a call in flight. Records that the log does not take at once are sent after the next start.
    pub async fn stop(self) {
        self.writer.inner.owed_tasks.close();
        self.writer.inner.owed_tasks.wait().await;
        if !self.writer.inner.alarms.is_doubting() {
            self.writer.record_denials();
            self.writer.end_client_streams().await;
            self.writer.end_unbound().await;
        }
        // The writer ends before the delivery: what it writes last is delivered too, and is durable if the process is killed
        // while the log is slow.
        self.stop_writer.cancel();
        // A panic of a task is logged where it happens.
        let _ = self.transactions.await;
        self.stop_others.cancel();
        for other in self.others {
            let _ = other.await;
        }
        if let Err(error) = self.writer.inner.store.leave().await {
            tracing::warn!(%error, "the instance could not be removed; its open decisions wait until its lease ends");
        }
    }
}

impl std::fmt::Debug for DecisionWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecisionWriter")
            .field("instance", &self.inner.context.instance)
            .finish_non_exhaustive()
    }
}
