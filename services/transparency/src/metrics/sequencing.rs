//! The sequencer's events, as metrics.

use std::sync::Arc;
use std::time::Duration;

use merkle::TreeSize;
use sequencer::{Halt, Observer, Role};

use crate::metrics::Metrics;
use crate::metrics::latency::Stage;

/// Records the sequencer's events as metrics.
pub struct Counting(pub Arc<Metrics>);

impl Observer for Counting {
    fn batch_committed(&self, entries: usize, _bytes: usize, took: Duration) {
        self.0.batches.entries.observe(entries as f64);
        self.0.stage(Stage::Commit, took);
        self.0.batches.round("none");
    }

    fn head_published(&self, _size: TreeSize, took: Duration) {
        self.0.batches.duration.observe(took.as_secs_f64());
    }

    fn signatures_made(&self, count: usize, took: Duration) {
        self.0.stage(Stage::Sign, took);
        self.0.batches.signatures.inc_by(count as u64);
    }

    fn commit_unknown(&self) {
        self.0.storage.commit_unknown.inc();
        self.0.batches.round("unknown");
    }

    fn signature_not_kept(&self) {
        self.0.batches.round("signature-not-kept");
    }

    fn role_changed(&self, role: &Role) {
        match role {
            Role::Halted(Halt::Frozen) => {
                tracing::warn!("the log is frozen: no more entries are added; reads continue")
            }
            Role::Halted(halt) => tracing::error!(%halt, "sequencing stopped; reads continue"),
            other => {
                tracing::info!(role = other.name(), epoch = other.epoch(), "the role of this process changed")
            }
        }
    }

    fn inbox_refused(&self) {
        self.0.inbox.refused.inc();
    }

    fn queue(&self, entries: usize, _bytes: usize) {
        self.0.batches.queue_depth.set(entries as i64);
    }
}
