//! The decision writer: the single task that makes each decision durable before the first byte goes to an upstream.
//!
//! Owns the evidence database: the state of sessions, accounts and other streams, the records of decisions, and the outbox
//! for the log. `calls` and `a2a` call it for each request ([`DecisionWriter::call`] and others); `gateway` opens and stops
//! it.
//!
//! The order of a tool call, with what is durable before what leaves the gateway:
//!
//! 1. The request's task takes a slot in the queue, reads what the decision needs, and submits a work item (`requests`).
//! 2. The writer task takes all queued items as one batch, decides each on a working copy of its session, and writes and
//!    signs a record of it (`transactions`, `decisions`).
//! 3. One transaction commits records, sessions, used claims and the outbox. Only then are the callers answered.
//! 4. The answer to an admitted call has an [`AdmittedCall`], the permission to forward it. If the operator demands it, the
//!    call first waits for the log's receipt of its decision (`required_receipts`).
//! 5. The outcome of the call is settled and recorded by an item of its own. The caller waits for its commit only if the call
//!    cost more than was reserved.
//! 6. The delivery sends every committed statement to the log; those that it refused before go behind the others
//!    (`record_outbox`).
//!
//! | file | contents |
//! |---|---|
//! | `requests` | the requests of `calls` for decisions |
//! | `jobs` | the data of these requests |
//! | `queue` | the bound on queued decisions |
//! | `transactions` | the writer task: batches of work items, and their commits |
//! | `decisions` | the work items, and the answers to their callers |
//! | `states`, `committed_stream` | the states of streams, and streams as the database has them |
//! | `session_cache`, `recent_reads` | the caches of the writer task, and of what others may change |
//! | `context`, `settings`, `clock` | what all decisions share |
//! | `session_ends`, `client_streams` | the ends of sessions, and the record streams of clients without VAP |
//! | `unrecorded_denials`, `denial_counts` | denials without a record of their own |
//! | `questions` | questions that wait for approvers outside of the client |
//! | `session_lookups` | a caller's scopes, for display |
//! | `tools` | pinned tools |
//! | `record_signer`, `verdict_keys` | statements, and the Verdict keys on the log |
//! | `record_outbox`, `backlog` | the records that wait for the log, as the crate `outbox` delivers them, and their limits |
//! | `required_receipts` | receipts that a call waits for |
//! | `clock_difference` | the difference of the clock from that of the database's server |
//! | `recovery`, `upkeep` | recovery after a dead process, and periodic work |
//! | `status`, `error` | counters and faults for the operator, and errors |
//!
//! Not here: admission rules (`admission`), storage of evidence (`evidence`), and the MCP answers (`calls`).

mod backlog;
mod client_streams;
mod clock;
mod clock_difference;
pub(crate) mod committed_stream;
mod context;
mod decisions;
mod denial_counts;
mod error;
mod jobs;
mod questions;
mod queue;
mod recent_reads;
mod record_outbox;
mod record_signer;
mod recovery;
mod requests;
mod required_receipts;
mod session_cache;
mod session_ends;
mod session_lookups;
mod settings;
pub(crate) mod states;
mod status;
mod tools;
mod transactions;
mod unrecorded_denials;
mod upkeep;
mod verdict_keys;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use admission::rules::Rules;
use evidence::{EvidenceStore, StoreError};
use outbox::Delivery;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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
use decisions::EnvelopesSinceWork;
use denial_counts::DenialCounts;
use questions::Questions;
use queue::OccupiedSlots;
pub(crate) use queue::QueuedCall;
use record_outbox::{ReceiptWaiters, RecordOutbox};
use status::Alarms;
pub(crate) use transactions::EarlyRead;
use transactions::{WorkItem, WriterTask};

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
    /// The queue of the writer task.
    items: mpsc::UnboundedSender<WorkItem>,
    /// The queue slots of decisions that were requested and are not made yet.
    slots: OccupiedSlots,
    backlog: Arc<BacklogGauge>,
    alarms: Arc<Alarms>,
    receipt_waiters: Arc<ReceiptWaiters>,
    denials: DenialCounts,
    client_streams: ClientStreams,
    questions: Questions,
    store: Arc<dyn EvidenceStore>,
    rules: RulesOf,
    /// The enforcement of AgentROA, if a registry is configured.
    agent_roa: OnceLock<Arc<AgentRoa>>,
    /// Tasks that are about to submit an item, which must be written before the writer stops.
    submissions: TaskTracker,
}

/// The background tasks of a [`DecisionWriter`], until [`stop`](Self::stop).
pub struct RunningWriter {
    writer: DecisionWriter,
    writer_task: JoinHandle<()>,
    stop_writer_task: CancellationToken,
    /// The delivery to the log, and the periodic work.
    other_tasks: Vec<JoinHandle<()>>,
    stop_other_tasks: CancellationToken,
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
        let backlog = Arc::new(BacklogGauge::default());
        backlog.set(store.backlog().await?);
        let (items, queue) = mpsc::unbounded_channel();
        let inner = Inner {
            context: Arc::new(WriterContext::new(keys, &log, clock, settings, store.instance())),
            items,
            slots: OccupiedSlots::default(),
            backlog,
            alarms: Arc::default(),
            receipt_waiters: Arc::default(),
            denials: DenialCounts::default(),
            client_streams: ClientStreams::default(),
            questions: Questions::default(),
            store,
            rules,
            agent_roa: OnceLock::new(),
            submissions: TaskTracker::new(),
        };
        let mut running = Self { inner: Arc::new(inner) }.start(log, queue);
        let writer = running.writer.clone();
        writer.recover().await;
        writer.publish(&keys.jwk_set).await;
        let upkeep = upkeep::run(writer.clone(), running.stop_other_tasks.clone());
        running.other_tasks.push(tokio::spawn(upkeep));
        Ok((writer, running))
    }

    /// Starts the writer task, which takes its items from `queue`, and the delivery to the log.
    fn start(self, log: LogConnection, queue: mpsc::UnboundedReceiver<WorkItem>) -> RunningWriter {
        let (stop_writer_task, stop_other_tasks) = (CancellationToken::new(), CancellationToken::new());
        let new_records = Arc::new(Notify::new());
        let Inner { context, store, backlog, alarms, receipt_waiters, .. } = &*self.inner;
        let writer_task = WriterTask::new(
            context.clone(),
            store.clone(),
            backlog.clone(),
            alarms.clone(),
            new_records.clone(),
            queue,
        );
        let records = RecordOutbox {
            store: store.clone(),
            backlog: backlog.clone(),
            receipt_waiters: receipt_waiters.clone(),
            alarms: alarms.clone(),
            clock: context.clock.clone(),
        };
        let linger = if context.settings.receipt_required { Duration::ZERO } else { SUBMIT_LINGER };
        let clock = context.clock.clone();
        let delivery = Delivery::new(records, log, Arc::new(move || clock.seconds()), new_records, linger);
        RunningWriter {
            writer_task: tokio::spawn(writer_task.run(stop_writer_task.clone())),
            stop_writer_task,
            other_tasks: vec![tokio::spawn(delivery.run(stop_other_tasks.clone()))],
            stop_other_tasks,
            writer: self,
        }
    }

    /// Returns the current counters and faults.
    pub fn status(&self) -> WriterStatus {
        let Inner { context, backlog: gauge, alarms, .. } = &*self.inner;
        let (now, limits) = (context.clock.seconds(), &context.settings.outbox);
        let backlog = gauge.backlog();
        let mut status = alarms.status();
        if self.inner.items.is_closed() {
            status.store_failing.get_or_insert_with(|| "the writer has ended".to_owned());
        }
        WriterStatus {
            open_questions: self.inner.questions.count(self.now().as_second()),
            oldest_age: backlog.oldest_at.map_or(0, |oldest| now.saturating_sub(oldest)),
            outbox_share: gauge.used_share(limits, now),
            backpressure: gauge.reached_limit(limits, now).map(|over| over.to_string()),
            backlog,
            ..status
        }
    }

    /// Returns the current rules of a route. For a route that is gone they are `Rules::denying_all`, which admits
    /// nothing.
    pub(crate) fn rules_of(&self, route: &str) -> Arc<Rules> {
        (self.inner.rules)(route)
            .unwrap_or_else(|| Arc::new(Rules::denying_all(route, self.inner.context.record_signer.issuer())))
    }

    /// Enforces AgentROA on the routes that demand it, from the first call on. While the database does not take the time
    /// since which the uses of envelopes are stored, calls under a chain are denied.
    pub async fn enforce(&self, agent_roa: Arc<AgentRoa>) {
        let (item, is_durable) = EnvelopesSinceWork::item();
        self.submit(item);
        if !matches!(tokio::time::timeout(SETTLE_TIME, is_durable).await, Ok(Ok(()))) {
            tracing::error!("calls under a delegation chain are denied until the database accepts writes");
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
    pub(crate) fn own_stream(&self) -> String {
        self.inner.context.own_stream()
    }

    /// Submits an item to the writer task. If the writer has stopped, the item fails with [`WriterError::Stopping`].
    fn submit(&self, item: WorkItem) {
        if let Err(unsent) = self.inner.items.send(item) {
            unsent.0.failed(&WriterError::Stopping);
        }
    }

    /// Spawns a task that submits an item; [`RunningWriter::stop`] waits for it.
    fn spawn_submission(&self, submission: impl Future<Output = ()> + Send + 'static) {
        self.inner.submissions.spawn(submission);
    }
}

impl RunningWriter {
    /// Stops the tasks after all items submitted so far are written. The stream of this instance is closed unless it has
    /// a call in flight. Records that the log does not take at once are sent after the next start.
    pub async fn stop(self) {
        let inner = &self.writer.inner;
        inner.submissions.close();
        inner.submissions.wait().await;
        if !inner.alarms.is_commit_in_doubt() {
            self.writer.record_counted_denials();
            self.writer.end_client_streams().await;
            self.writer.end_own_stream().await;
        }
        // The writer task ends before the delivery: what it writes last is delivered too, and is durable if the process is
        // killed while the log is slow.
        self.stop_writer_task.cancel();
        // A panic of a task is logged where it happens.
        let _ = self.writer_task.await;
        self.stop_other_tasks.cancel();
        for task in self.other_tasks {
            let _ = task.await;
        }
        if let Err(error) = inner.store.leave().await {
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
