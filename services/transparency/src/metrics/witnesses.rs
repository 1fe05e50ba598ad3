//! Metrics of the witnesses.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec};
use serving::metrics::MetricRegistry;

/// The witnesses' metrics. The names in labels are those of the policy file.
pub struct WitnessMetrics {
    cosigned_size: IntGaugeVec,
    cosigned_at: IntGaugeVec,
    errors: IntCounterVec,
    /// `tabellion_witness_quorum_met`: 1 if a quorum has cosigned recently, or none is required.
    pub quorum_met: IntGauge,
    /// `tabellion_checkpoint_served_size_leaves`: number of leaves in the served checkpoint.
    pub served_size: IntGauge,
}

impl WitnessMetrics {
    /// Registers the metrics.
    pub fn new(registry: &MetricRegistry) -> Result<Self, prometheus::Error> {
        let quorum_met = registry
            .gauge("tabellion_witness_quorum_met", "Whether enough witnesses have cosigned lately")?;
        quorum_met.set(1);
        Ok(Self {
            cosigned_size: registry.gauges(
                "tabellion_witness_cosigned_size_leaves",
                "Leaves of the largest tree that a witness cosigned",
                &["witness"],
            )?,
            cosigned_at: registry.gauges(
                "tabellion_witness_cosigned_timestamp_seconds",
                "When it did last, by its own clock",
                &["witness"],
            )?,
            errors: registry.counters(
                "tabellion_witness_errors_total",
                "Times that a witness did not cosign, by reason",
                &["witness", "code"],
            )?,
            quorum_met,
            served_size: registry.gauge(
                "tabellion_checkpoint_served_size_leaves",
                "Leaves of the checkpoint that is served",
            )?,
        })
    }

    /// Creates a witness's metrics at zero, so that they are present before its first response.
    pub fn name(&self, witness: &str) {
        self.cosigned(witness, 0, 0);
        self.errors.with_label_values(&[witness, "unreachable"]);
    }

    /// Records the largest tree that a witness cosigned, and the time by its clock.
    pub fn cosigned(&self, witness: &str, size: u64, at: u64) {
        let gauge = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.cosigned_size.with_label_values(&[witness]).set(gauge(size));
        self.cosigned_at.with_label_values(&[witness]).set(gauge(at));
    }

    /// Counts a failed exchange (`tabellion_witness_errors_total`).
    pub fn error(&self, witness: &str, code: &str) {
        self.errors.with_label_values(&[witness, code]).inc();
    }
}
