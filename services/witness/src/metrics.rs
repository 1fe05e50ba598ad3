//! Prometheus metrics. The only label with a name is the origin of a listed log.

use http::StatusCode;
use prometheus::{Encoder, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use tlog::checkpoint::Origin;

use crate::ledger::Ledger;

/// All metrics of a witness.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    forks: IntCounterVec,
    size: IntGaugeVec,
    time: IntGaugeVec,
    logs: IntGauge,
}

impl Metrics {
    /// Creates a registry with all metrics at zero.
    pub fn new() -> Result<Self, prometheus::Error> {
        let counter = |name, help, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let gauge = |name, help| IntGaugeVec::new(Opts::new(name, help), &["log"]);
        let metrics = Self {
            registry: Registry::new(),
            requests: counter(
                "witness_add_checkpoint_total",
                "Requests to cosign, by the status of the answer",
                &["status"],
            )?,
            forks: counter(
                "witness_inconsistency_total",
                "Signed checkpoints that do not extend what was cosigned: 422",
                &["log"],
            )?,
            size: gauge("witness_log_size_leaves", "Size of the newest checkpoint that was cosigned")?,
            time: gauge("witness_log_cosigned_timestamp_seconds", "When it was cosigned")?,
            logs: IntGauge::new("witness_logs", "Logs that are witnessed")?,
        };
        let Self { registry, requests, forks, size, time, logs } = &metrics;
        for status in [200, 400, 403, 404, 409, 422, 429, 503] {
            requests.with_label_values(&[status.to_string()]);
        }
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(forks.clone()))?;
        registry.register(Box::new(size.clone()))?;
        registry.register(Box::new(time.clone()))?;
        registry.register(Box::new(logs.clone()))?;
        Ok(metrics)
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
    pub fn text(&self, ledger: &Ledger) -> Result<Vec<u8>, prometheus::Error> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.logs.set(number(ledger.logs().len() as u64));
        for latest in ledger.all() {
            let log = [latest.checkpoint.origin().as_str()];
            self.size.with_label_values(&log).set(number(latest.checkpoint.size().get()));
            self.time.with_label_values(&log).set(number(latest.time));
        }
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }
}
