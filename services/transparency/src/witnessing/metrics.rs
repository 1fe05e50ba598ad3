//! What is counted about witnesses.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// Their metrics. The names in labels are those of the policy file.
pub struct WitnessMetrics {
    cosigned_size: IntGaugeVec,
    cosigned_at: IntGaugeVec,
    errors: IntCounterVec,
    /// Whether enough witnesses have cosigned lately; 1 if none has to.
    pub quorum_met: IntGauge,
    /// Leaves of the checkpoint that is served.
    pub served_size: IntGauge,
}

impl WitnessMetrics {
    /// Registers them.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauges = |name: &str, help: &str| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), &["witness"])?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let errors = IntCounterVec::new(
            Opts::new("tabellion_witness_errors_total", "Times that a witness did not cosign, by reason"),
            &["witness", "code"],
        )?;
        registry.register(Box::new(errors.clone()))?;
        let quorum_met =
            gauge("tabellion_witness_quorum_met", "Whether enough witnesses have cosigned lately")?;
        quorum_met.set(1);
        Ok(Self {
            cosigned_size: gauges(
                "tabellion_witness_cosigned_size",
                "Leaves of the largest tree that a witness cosigned",
            )?,
            cosigned_at: gauges(
                "tabellion_witness_cosigned_timestamp_seconds",
                "When it did last, by its own clock",
            )?,
            errors,
            quorum_met,
            served_size: gauge(
                "tabellion_checkpoint_served_size_leaves",
                "Leaves of the checkpoint that is served",
            )?,
        })
    }

    /// A witness that never said anything is at zero, not absent.
    pub fn name(&self, witness: &str) {
        self.cosigned(witness, 0, 0);
        self.errors.with_label_values(&[witness, "unreachable"]);
    }

    /// The largest tree that it cosigned, and when.
    pub fn cosigned(&self, witness: &str, size: u64, at: u64) {
        let gauge = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.cosigned_size.with_label_values(&[witness]).set(gauge(size));
        self.cosigned_at.with_label_values(&[witness]).set(gauge(at));
    }

    /// It did not cosign.
    pub fn error(&self, witness: &str, code: &str) {
        self.errors.with_label_values(&[witness, code]).inc();
    }
}
