//! Prometheus metrics. Labels have a fixed set of values.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge};
use serving::database_metrics::DatabaseMetrics;
use serving::http_metrics::HttpMetrics;
use serving::metrics::MetricRegistry;
use verification_store::{StoreError, VerificationStore};

/// Upper bounds of the histogram of check times, in seconds.
const CHECK_SECONDS: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 600.0];

/// All metrics of a service.
#[derive(Debug)]
pub struct Metrics {
    registry: MetricRegistry,
    /// Metrics of the requests on the public listener.
    pub http: Arc<HttpMetrics>,
    /// Metric of the operations of the service's store.
    pub database: DatabaseMetrics,
    requests: IntCounterVec,
    receipts: IntCounterVec,
    failures: IntCounterVec,
    check_seconds: Histogram,
    queued: IntGauge,
    running: IntGauge,
    waiting: IntGauge,
    refused: IntGauge,
    halted: IntGauge,
    delivered: IntCounter,
    log_silent: IntGauge,
}

impl Metrics {
    /// Creates a registry with all metrics at zero.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = MetricRegistry::default();
        let requests = registry.counters(
            "tabellion_verification_requests_total",
            "Requests to verify, by the status of the answer",
            &["status"],
        )?;
        let receipts = registry.counters(
            "tabellion_verification_receipts_total",
            "Signed receipts, by verdict",
            &["verdict"],
        )?;
        for verdict in ["pass", "fail", "partial", "error"] {
            receipts.with_label_values(&[verdict]);
        }
        Ok(Self {
            http: Arc::new(HttpMetrics::new(&registry)?),
            database: DatabaseMetrics::new(&registry)?,
            requests,
            receipts,
            failures: registry.counters(
                "tabellion_verification_failures_total",
                "Requests that could not be checked or signed, by code",
                &["code"],
            )?,
            check_seconds: registry.histogram(
                "tabellion_verification_check_duration_seconds",
                "Time from the start of the checks of a request to their end",
                CHECK_SECONDS,
            )?,
            queued: registry
                .gauge("tabellion_verification_queued_requests", "Accepted requests that are not finished")?,
            running: registry
                .gauge("tabellion_verification_running_requests", "Requests whose checks are running")?,
            waiting: registry.gauge(
                "tabellion_verification_outbox_waiting_receipts",
                "Signed receipts that wait for the log",
            )?,
            refused: registry.gauge(
                "tabellion_verification_outbox_refused_receipts",
                "Signed receipts that the log refuses",
            )?,
            halted: registry
                .gauge("tabellion_verification_chains_halted", "Chains that another process has forked")?,
            delivered: registry.counter(
                "tabellion_verification_receipts_delivered_total",
                "Receipts that the log has taken",
            )?,
            log_silent: registry
                .gauge("tabellion_verification_log_silent", "1 while the log takes nothing")?,
            registry,
        })
    }

    /// Counts an answer to a request to verify.
    pub fn answered(&self, status: StatusCode) {
        self.requests.with_label_values(&[status.as_str()]).inc();
    }

    /// Counts a signed receipt.
    pub fn signed(&self, verdict: &str) {
        self.receipts.with_label_values(&[verdict]).inc();
    }

    /// Counts a job that failed.
    pub fn failed(&self, code: &str) {
        self.failures.with_label_values(&[code]).inc();
    }

    /// Notes that the checks of a request begin.
    pub fn check_begins(&self) {
        self.running.inc();
    }

    /// Notes that the checks of a request ended after this time.
    pub fn check_ended(&self, after: Duration) {
        self.running.dec();
        self.check_seconds.observe(after.as_secs_f64());
    }

    /// Counts receipts that the log has taken.
    pub fn delivered(&self, receipts: usize) {
        self.delivered.inc_by(u64::try_from(receipts).unwrap_or(u64::MAX));
    }

    /// Sets whether the log takes nothing.
    pub fn log_silent(&self, silent: bool) {
        self.log_silent.set(i64::from(silent));
    }

    /// Renders all metrics, with those that the database knows.
    ///
    /// # Errors
    /// If a metric cannot be encoded.
    pub async fn text(&self, store: &VerificationStore, queued: usize) -> Result<String, prometheus::Error> {
        if let Err(error) = self.read(store).await {
            tracing::warn!(%error, "some metrics are from an earlier time");
        }
        self.queued.set(i64::try_from(queued).unwrap_or(i64::MAX));
        self.registry.text_with_process()
    }

    async fn read(&self, store: &VerificationStore) -> Result<(), StoreError> {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (waiting, refused) = store.backlog().await?;
        self.waiting.set(number(waiting));
        self.refused.set(number(refused));
        self.halted.set(number(store.halted_chains().await?));
        Ok(())
    }
}
