//! Metrics of the sequencer: its queue, its batches, and the tree that it publishes.

use prometheus::{Error, Gauge, Histogram, IntCounter, IntCounterVec, IntGauge};
use serving::metrics::MetricRegistry;

/// Histogram buckets for the entries in one commit.
const ENTRIES: &[f64] = &[1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0];

/// Metrics of the sequencer and its batches.
pub struct BatchMetrics {
    /// `tabellion_sequence_duration_seconds`: time per batch, from taking the queue to the commit's response.
    pub duration: Histogram,
    /// `tabellion_sequence_batch_entries`: entries per batch.
    pub entries: Histogram,
    rounds: IntCounterVec,
    /// `tabellion_queue_entries`: submissions waiting in the queue.
    pub queue_depth: IntGauge,
    /// `tabellion_queue_rejected_total`: submissions refused because the queue or the inbox is full.
    pub queue_rejected: IntCounter,
    /// `tabellion_head_signatures_total`: signatures over heads, one of each kind per batch, independent of the number of
    /// receipts.
    pub signatures: IntCounter,
}

impl BatchMetrics {
    /// Registers the metrics. Durations are counted in the buckets `seconds`.
    pub fn new(registry: &MetricRegistry, seconds: &[f64]) -> Result<Self, Error> {
        let rounds =
            registry.counters("tabellion_sequence_rounds_total", "Batches by failure", &["error"])?;
        // Present at zero: a rate over a counter that appears only with its first event misses that event.
        rounds.with_label_values(&["none"]);
        Ok(Self {
            duration: registry.histogram(
                "tabellion_sequence_duration_seconds",
                "Time to commit a batch",
                seconds,
            )?,
            entries: registry.histogram("tabellion_sequence_batch_entries", "Entries in a batch", ENTRIES)?,
            rounds,
            queue_depth: registry
                .gauge("tabellion_queue_entries", "Submissions waiting for the sequencer")?,
            queue_rejected: registry.counter("tabellion_queue_rejected_total", "Submissions turned away")?,
            signatures: registry.counter("tabellion_head_signatures_total", "Signatures made over heads")?,
        })
    }

    /// Records the end of a batch; `error` is `"none"` or a short name.
    pub fn round(&self, error: &'static str) {
        self.rounds.with_label_values(&[error]).inc();
    }
}

/// Metrics of the newest published tree.
pub struct TreeMetrics {
    /// `tabellion_tree_size_leaves`: number of leaves.
    pub size: IntGauge,
    /// `tabellion_tree_timestamp_seconds`: commit time of the newest batch, in Unix seconds.
    pub timestamp: IntGauge,
    /// `tabellion_checkpoint_age_seconds`: age of the head.
    pub checkpoint_age: Gauge,
}

impl TreeMetrics {
    /// Registers the metrics.
    pub fn new(registry: &MetricRegistry) -> Result<Self, Error> {
        Ok(Self {
            size: registry.gauge("tabellion_tree_size_leaves", "Leaves in the newest published tree")?,
            timestamp: registry
                .gauge("tabellion_tree_timestamp_seconds", "When its last batch was committed")?,
            checkpoint_age: registry
                .fraction("tabellion_checkpoint_age_seconds", "Age of the newest published head")?,
        })
    }
}
