//! Prometheus metrics, under the names that dashboards and alerts use.
//!
//! A label never contains a payload, subject or issuer.

pub mod batches;
pub mod latency;
pub mod sequencing;
pub mod storage;
pub mod stream_end;
pub mod witnesses;

use std::time::Duration;

use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGauge};
use serving::database_metrics::DatabaseMetrics;
use serving::http_metrics::{HttpMetrics, SECONDS};
use serving::metrics::MetricRegistry;

use crate::metrics::batches::{BatchMetrics, TreeMetrics};
use crate::metrics::latency::{Stage, StageDurations, StageLatency};
use crate::metrics::storage::{FsckMetrics, InboxMetrics, LookupIndexMetrics, StorageMetrics};
use crate::metrics::stream_end::StreamMetrics;
use crate::metrics::witnesses::WitnessMetrics;

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
    /// Metric of the operations of the log's store.
    pub database: DatabaseMetrics,
    register_total: [IntCounter; RegistrationOutcome::ALL.len()],
    stages: StageDurations,
    receipts: IntCounterVec,
    proof_duration: HistogramVec,
    /// `tabellion_request_body_bytes`: memory reserved for request bodies.
    pub body_bytes: IntGauge,
    /// `tabellion_equivocations_total`: refused statements whose issuer had signed the contrary.
    pub equivocations: IntCounter,
    /// `tabellion_closed_bodies_read_total`: bodies of closed content types that were read.
    pub closed_bodies_read: IntCounter,
    /// Metrics of the newest published tree.
    pub tree: TreeMetrics,
    /// Metrics of the sequencer and its batches.
    pub batches: BatchMetrics,
    /// Metrics of the inbox.
    pub inbox: InboxMetrics,
    /// Metrics of the lookup index.
    pub index: LookupIndexMetrics,
    /// Metrics of streams of entries.
    pub streams: StreamMetrics,
    /// Metrics of the check of the storage.
    pub fsck: FsckMetrics,
    /// Metrics of the database and of the file systems.
    pub storage: StorageMetrics,
    /// Metrics of the witnesses.
    pub witness: WitnessMetrics,
}

impl Metrics {
    /// Registers all metrics, at zero.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = MetricRegistry::default();
        let durations =
            |name: &str, help: &str, labels: &[&str]| registry.histograms(name, help, SECONDS, labels);
        Ok(Self {
            http: HttpMetrics::new(&registry)?,
            database: DatabaseMetrics::new(&registry)?,
            register_total: by_outcome(&registry.counters(
                "tabellion_register_total",
                "Registrations by result",
                &["result"],
            )?),
            stages: StageDurations::of(&durations(
                "tabellion_register_duration_seconds",
                "Time a registration spends in each stage",
                &["stage"],
            )?),
            receipts: registry.counters("tabellion_receipt_issued_total", "Receipts served", &["alg"])?,
            proof_duration: durations(
                "tabellion_proof_duration_seconds",
                "Time to build a proof",
                &["kind"],
            )?,
            body_bytes: registry.gauge("tabellion_request_body_bytes", "Memory held by request bodies")?,
            equivocations: registry.counter(
                "tabellion_equivocations_total",
                "Refusals of a statement whose issuer signed the contrary",
            )?,
            closed_bodies_read: registry.counter(
                "tabellion_closed_bodies_read_total",
                "Statements and payloads of closed content types that were read",
            )?,
            tree: TreeMetrics::new(&registry)?,
            batches: BatchMetrics::new(&registry, SECONDS)?,
            inbox: InboxMetrics::new(&registry)?,
            index: LookupIndexMetrics::new(&registry)?,
            streams: StreamMetrics::new(&registry)?,
            fsck: FsckMetrics::new(&registry)?,
            storage: StorageMetrics::new(&registry)?,
            witness: WitnessMetrics::new(&registry)?,
            registry,
        })
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

    /// The counter of served receipts with signatures of this algorithm.
    pub fn receipts(&self, algorithm: &str) -> IntCounter {
        self.receipts.with_label_values(&[algorithm])
    }

    /// Records a proof built from stored tiles.
    pub fn proof(&self, kind: &'static str, took: Duration) {
        self.proof_duration.with_label_values(&[kind]).observe(took.as_secs_f64());
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
