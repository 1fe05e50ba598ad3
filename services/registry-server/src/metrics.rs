//! Prometheus metrics. Labels have a fixed set of values.

use std::sync::Arc;

use http::StatusCode;
use prometheus::{Error, IntCounterVec, IntGauge, IntGaugeVec};
use serving::http_metrics::HttpMetrics;
use serving::metrics::MetricRegistry;

use crate::files::RegistryFiles;

/// The value of `document` for the registry.
pub const REGISTRY: &str = "registry";
/// The value of `document` for the revocation deltas.
pub const DELTAS: &str = "deltas";

/// All metrics of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: MetricRegistry,
    /// Metrics of the requests on the public listener.
    pub http: Arc<HttpMetrics>,
    requests: IntCounterVec,
    usable: IntGaugeVec,
    epoch: IntGauge,
    sequence: IntGauge,
}

impl Metrics {
    /// Creates a registry of metrics with all counters at zero.
    ///
    /// # Errors
    /// If two metrics have the same name.
    pub fn new() -> Result<Self, Error> {
        let registry = MetricRegistry::default();
        let requests = registry.counters(
            "tabellion_registry_requests_total",
            "Requests for a document, by the status of the answer",
            &["document", "status"],
        )?;
        for document in [REGISTRY, DELTAS] {
            for status in ["200", "304", "503"] {
                requests.with_label_values(&[document, status]);
            }
        }
        Ok(Self {
            http: Arc::new(HttpMetrics::new(&registry)?),
            requests,
            usable: registry.gauges(
                "tabellion_registry_file_usable",
                "1 while the file verifies and is served",
                &["document"],
            )?,
            epoch: registry
                .gauge("tabellion_registry_epoch", "Epoch of the registry that was verified last")?,
            sequence: registry
                .gauge("tabellion_registry_sequence", "Sequence of the registry that was verified last")?,
            registry,
        })
    }

    /// Counts an answer to a request for a document.
    pub fn answered(&self, document: &str, status: StatusCode) {
        self.requests.with_label_values(&[document, status.as_str()]).inc();
    }

    /// Renders all metrics, after reading files that have changed. Blocks.
    ///
    /// # Errors
    /// If a metric cannot be encoded.
    pub fn text(&self, files: &RegistryFiles) -> Result<String, Error> {
        let usable = |document: &str, is_usable: bool| {
            self.usable.with_label_values(&[document]).set(i64::from(is_usable));
        };
        usable(REGISTRY, files.registry().is_ok());
        match files.deltas() {
            Ok(None) => {}
            deltas => usable(DELTAS, deltas.is_ok()),
        }
        if let Some(version) = files.version() {
            self.epoch.set(number(version.epoch));
            self.sequence.set(number(version.sequence));
        }
        self.registry.text_with_process()
    }
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
