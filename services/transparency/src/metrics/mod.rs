//! Prometheus metrics, under the names that dashboards and alerts use.
//!
//! A label never contains a payload, subject or issuer.

pub mod latency;
pub mod sequencing;
pub mod stream_end;
pub mod witnesses;

use std::time::Duration;

use prometheus::{Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge};
use serving::http_metrics::{HttpMetrics, SECONDS};
use serving::metrics::MetricRegistry;

use crate::metrics::latency::{Stage, StageDurations, StageLatency};
use crate::metrics::witnesses::WitnessMetrics;

/// Histogram buckets for the entries in one commit.
const ENTRIES: &[f64] = &[1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0];

/// The outcome of a registration, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationOutcome {
    /// A new leaf.
    Accepted,
    /// The statement was registered before.
    Duplicate,
    /// The body is not a Signed Statement.
    Malformed,
    /// The signature or its key was not accepted.
    Signature,
    /// The policy refused the statement.
    Policy,
    /// A limit refused the statement: queue full, issuer quota.
    Limit,
    /// The service failed.
    Error,
}

impl RegistrationOutcome {
    const ALL: [Self; 7] = [
        Self::Accepted,
        Self::Duplicate,
        Self::Malformed,
        Self::Signature,
        Self::Policy,
        Self::Limit,
        Self::Error,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Malformed => "malformed",
            Self::Signature => "signature",
            Self::Policy => "policy",
            Self::Limit => "limit",
            Self::Error => "error",
        }
    }
}

/// All metrics of the service.
pub struct Metrics {
    registry: MetricRegistry,
    /// Metrics of requests on the public listener.
    pub http: HttpMetrics,
    register_total: [IntCounter; RegistrationOutcome::ALL.len()],
    stages: StageDurations,
    /// `tabellion_tree_size_leaves`: number of leaves in the newest published tree.
    pub tree_size: IntGauge,
    /// `tabellion_tree_timestamp_seconds`: commit time of its newest batch, in Unix seconds.
    pub tree_timestamp: IntGauge,
    /// `tabellion_checkpoint_age_seconds`: age of the newest published head.
    pub checkpoint_age: Gauge,
    /// `tabellion_sequence_duration_seconds`: time per batch, from taking the queue to the commit's response.
    pub sequence_duration: Histogram,
    /// `tabellion_sequence_batch_entries`: entries per batch.
    pub sequence_batch: Histogram,
    sequence_rounds: IntCounterVec,
    /// `tabellion_queue_entries`: submissions waiting in the queue.
    pub queue_depth: IntGauge,
    /// `tabellion_queue_rejected_total`: submissions refused because the queue or the inbox is full.
    pub queue_rejected: IntCounter,
    /// `tabellion_request_body_bytes`: memory reserved for request bodies.
    pub body_bytes: IntGauge,
    /// `tabellion_inbox_rows`: accepted statements that are not in the log yet.
    pub inbox_rows: IntGauge,
    /// `tabellion_inbox_bytes`: bytes of the submissions in the inbox.
    pub inbox_bytes: IntGauge,
    /// `tabellion_inbox_oldest_seconds`: age of the oldest statement in the inbox; zero when it is empty.
    pub inbox_oldest: IntGauge,
    /// `tabellion_inbox_refused_total`: accepted statements that this process refused for good.
    pub inbox_refused: IntCounter,
    /// `tabellion_equivocations_total`: refused statements whose issuer had signed the contrary.
    pub equivocations: IntCounter,
    /// Signatures over heads: one of each kind per batch, independent of the number of receipts.
    pub signatures: IntCounter,
    receipts: IntCounterVec,
    proof_duration: HistogramVec,
    /// `tabellion_storage_commit_unknown_total`: commits whose outcome had to be looked up.
    pub commit_unknown: IntCounter,
    /// `tabellion_storage_fence_epoch`: the fencing epoch in force.
    pub fence_epoch: IntGauge,
    /// `tabellion_index_lag_leaves`: committed leaves that are not in the lookup index yet.
    pub index_lag: IntGauge,
    /// `tabellion_index_head_size_leaves`: number of leaves that the newest known head of the lookup index commits to.
    pub index_head_size: IntGauge,
    /// `tabellion_index_head_timestamp_seconds`: time of that head, in Unix seconds.
    pub index_head_timestamp: IntGauge,
    /// `tabellion_entry_streams`: open streams of entries.
    pub entry_streams: IntGauge,
    entry_streams_ended: IntCounterVec,
    /// End of the last check of the whole storage without findings, in Unix seconds.
    pub fsck_last_success: IntGauge,
    /// `tabellion_fsck_mismatch_total`: findings of the storage check.
    pub fsck_mismatches: IntCounter,
    /// `tabellion_fsck_progress_leaves`: leaves that the storage check in progress has passed.
    pub fsck_progress: IntGauge,
    /// Metrics of the witnesses.
    pub witness: WitnessMetrics,
    /// `tabellion_closed_bodies_read_total`: bodies of closed content types that were read.
    pub closed_bodies_read: IntCounter,
    /// `tabellion_log_frozen`: 1 if the log is frozen.
    pub log_frozen: IntGauge,
    /// Free bytes in the state directory or the database's folder, whichever has fewer.
    pub free_bytes: IntGauge,
    /// `tabellion_storage_low`: 1 if registration is refused for lack of free space.
    pub storage_low: IntGauge,
}

impl Metrics {
    /// Registers all metrics, at zero.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = MetricRegistry::default();
        let durations =
            |name: &str, help: &str, labels: &[&str]| registry.histograms(name, help, SECONDS, labels);
        let metrics = Self {
            http: HttpMetrics::new(&registry)?,
            register_total: by_outcome(&registry.counters("tabellion_register_total",
                "Registrations by result",
                &["result"],
            )?),
            stages: StageDurations::of(&durations("tabellion_register_duration_seconds",
                "Time a registration spends in each stage",
                &["stage"],
            )?),
            tree_size: registry.gauge("tabellion_tree_size_leaves", "Leaves in the newest published tree")?,
            tree_timestamp: registry.gauge("tabellion_tree_timestamp_seconds",
                "When its last batch was committed",
            )?,
            checkpoint_age: registry.fraction("tabellion_checkpoint_age_seconds", "Age of the newest published head")?,
            sequence_duration: registry.histogram(
                    "tabellion_sequence_duration_seconds",
                    "Time to commit a batch",
                    SECONDS,
                )?,
            sequence_batch: registry.histogram(
                    "tabellion_sequence_batch_entries",
                    "Entries in a batch",
                    ENTRIES,
                )?,
            sequence_rounds: registry.counters("tabellion_sequence_rounds_total",
                "Batches by failure",
                &["error"],
            )?,
            queue_depth: registry.gauge("tabellion_queue_entries", "Submissions waiting for the sequencer")?,
            queue_rejected: registry.counter("tabellion_queue_rejected_total", "Submissions turned away")?,
            closed_bodies_read: registry.counter("tabellion_closed_bodies_read_total",
                "Statements and payloads of closed content types that were read",
            )?,
            body_bytes: registry.gauge("tabellion_request_body_bytes", "Memory held by request bodies")?,
            inbox_rows: registry.gauge("tabellion_inbox_rows",
                "Accepted statements that are not in the log yet",
            )?,
            inbox_bytes: registry.gauge("tabellion_inbox_bytes", "Bytes of their submissions")?,
            inbox_oldest: registry.gauge("tabellion_inbox_oldest_seconds",
                "Age of the oldest accepted statement that is not in the log yet",
            )?,
            inbox_refused: registry.counter("tabellion_inbox_refused_total",
                "Accepted statements that were refused for good",
            )?,
            equivocations: registry.counter("tabellion_equivocations_total",
                "Refusals of a statement whose issuer signed the contrary",
            )?,
            signatures: registry.counter("tabellion_head_signatures_total", "Signatures made over heads")?,
            receipts: registry.counters("tabellion_receipt_issued_total", "Receipts served", &["alg"])?,
            proof_duration: durations("tabellion_proof_duration_seconds",
                "Time to build a proof",
                &["kind"],
            )?,
            commit_unknown: registry.counter("tabellion_storage_commit_unknown_total",
                "Commits whose outcome had to be looked up",
            )?,
            fence_epoch: registry.gauge("tabellion_storage_fence_epoch", "The fencing epoch in force")?,
            index_lag: registry.gauge("tabellion_index_lag_leaves",
                "Committed leaves that searches do not find yet",
            )?,
            index_head_size: registry.gauge("tabellion_index_head_size_leaves",
                "Leaves that the newest known head of the search index commits to",
            )?,
            index_head_timestamp: registry.gauge("tabellion_index_head_timestamp_seconds",
                "When that head was made",
            )?,
            entry_streams: registry.gauge("tabellion_entry_streams", "Streams of entries that are open")?,
            entry_streams_ended: registry.counters("tabellion_entry_streams_ended_total",
                "Streams of entries that ended, by reason",
                &["reason"],
            )?,
            fsck_last_success: registry.gauge("tabellion_fsck_last_success_timestamp_seconds",
                "When a check of the whole storage last found nothing",
            )?,
            fsck_mismatches: registry.counter("tabellion_fsck_mismatch_total",
                "Findings of the check of the storage",
            )?,
            fsck_progress: registry.gauge("tabellion_fsck_progress_leaves",
                "Leaves that the check under way has passed",
            )?,
            witness: WitnessMetrics::new(&registry)?,
            log_frozen: registry.gauge("tabellion_log_frozen",
                "Whether the log takes no more entries, for ever",
            )?,
            free_bytes: registry.gauge("tabellion_storage_free_bytes",
                "Free bytes in the state directory or in the folder of a SQLite database, whichever has fewer",
            )?,
            storage_low: registry.gauge("tabellion_storage_low",
                "Whether registration is refused since fewer than min_free_bytes are free",
            )?,
            registry,
        };
        metrics.name_every_reason();
        Ok(metrics)
    }

    /// Creates every label value at zero: a rate over a counter that appears only with its first event misses that
    /// event.
    fn name_every_reason(&self) {
        self.sequence_rounds.with_label_values(&["none"]);
        for reason in stream_end::reasons() {
            self.entry_streams_ended.with_label_values(&[reason]);
        }
    }

    /// Records the outcome of a registration.
    pub fn registration(&self, outcome: RegistrationOutcome) {
        self.register_total[outcome as usize].inc();
    }

    /// Records the time that a registration spent in a stage.
    pub fn stage(&self, stage: Stage, took: Duration) {
        self.stages.observe(stage, took);
    }

    /// Returns how long registrations spent in each stage since the process started.
    pub fn stage_latencies(&self) -> Vec<StageLatency> {
        self.stages.latencies()
    }

    /// Records the end of a batch; `error` is `"none"` or a short name.
    pub fn round(&self, error: &'static str) {
        self.sequence_rounds.with_label_values(&[error]).inc();
    }

    /// The counter of served receipts with signatures of this algorithm.
    pub fn receipts(&self, algorithm: &str) -> IntCounter {
        self.receipts.with_label_values(&[algorithm])
    }

    /// Records a proof built from stored tiles.
    pub fn proof(&self, kind: &'static str, took: Duration) {
        self.proof_duration.with_label_values(&[kind]).observe(took.as_secs_f64());
    }

    /// Records the end of a stream of entries.
    pub fn entry_stream_ended(&self, reason: &'static str) {
        self.entry_streams_ended.with_label_values(&[reason]).inc();
    }

    /// All metrics in Prometheus's text format.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        self.registry.text_with_process()
    }
}

/// The counter of each outcome, in the order of [`RegistrationOutcome::ALL`].
fn by_outcome(counters: &IntCounterVec) -> [IntCounter; RegistrationOutcome::ALL.len()] {
    RegistrationOutcome::ALL.map(|outcome| counters.with_label_values(&[outcome.label()]))
}
