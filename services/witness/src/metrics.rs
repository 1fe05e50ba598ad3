//! Prometheus metrics. The only label with a name is the origin of a listed log.

use std::sync::Arc;

use http::StatusCode;
use prometheus::{IntCounterVec, IntGauge, IntGaugeVec};
use serving::http_metrics::HttpMetrics;
use serving::metrics::MetricRegistry;
use tlog::checkpoint::Origin;

use crate::ledger::Ledger;

/// All metrics of a witness.
#[derive(Debug)]
pub struct Metrics {
    registry: MetricRegistry,
    /// Metrics of the requests on the public listener.
    pub http: Arc<HttpMetrics>,
    requests: IntCounterVec,
    forks: IntCounterVec,
    size: IntGaugeVec,
    time: IntGaugeVec,
    logs: IntGauge,
}

impl Metrics {
    /// Creates a registry with all metrics at zero.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = MetricRegistry::default();
        let requests = registry.counters(
            "witness_add_checkpoint_requests_total",
            "Requests to cosign, by the status of the answer",
            &["status"],
        )?;
        for status in [200, 400, 403, 404, 409, 422, 429, 503] {
            requests.with_label_values(&[status.to_string()]);
        }
        Ok(Self {
            http: Arc::new(HttpMetrics::new(&registry)?),
            requests,
            forks: registry.counters(
                "witness_inconsistency_total",
                "Signed checkpoints that do not extend the cosigned one: 422",
                &["log"],
            )?,
            size: registry.gauges(
                "witness_log_size_leaves",
                "Size of the newest checkpoint that was cosigned",
                &["log"],
            )?,
            time: registry.gauges(
                "witness_log_cosigned_timestamp_seconds",
                "When it was cosigned",
                &["log"],
            )?,
            logs: registry.gauge("witness_logs", "Logs that are witnessed")?,
            registry,
        })
    }

    /// Counts a response to `add-checkpoint` by its status.
    pub fn answered(&self, status: StatusCode) {
        self.requests.with_label_values(&[status.as_str()]).inc();
    }

    /// Counts a checkpoint, signed by its log, that is not proven to extend the last cosigned one.
    pub fn inconsistent(&self, log: &Origin) {
        self.forks.with_label_values(&[log.as_str()]).inc();
    }

    /// All metrics in Prometheus's text format.
    pub fn text(&self, ledger: &Ledger) -> Result<String, prometheus::Error> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.logs.set(number(ledger.logs().len() as u64));
        for latest in ledger.all() {
            let log = [latest.checkpoint.origin().as_str()];
            self.size.with_label_values(&log).set(number(latest.checkpoint.size().get()));
            self.time.with_label_values(&log).set(number(latest.time));
        }
        self.registry.text()
    }
}
