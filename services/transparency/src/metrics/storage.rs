//! Metrics of what is stored: the database, the inbox, the lookup index, and the check of all of it.

use prometheus::{Error, IntCounter, IntGauge};
use serving::metrics::MetricRegistry;

/// Metrics of the database and of the file systems.
pub struct StorageMetrics {
    /// `tabellion_storage_commit_unknown_total`: commits whose outcome had to be looked up.
    pub commit_unknown: IntCounter,
    /// `tabellion_storage_fence_epoch`: the fencing epoch in force.
    pub fence_epoch: IntGauge,
    /// `tabellion_log_frozen`: 1 if the log is frozen.
    pub frozen: IntGauge,
    /// `tabellion_storage_free_bytes`: free bytes in the state directory or the database's folder, whichever has fewer.
    pub free_bytes: IntGauge,
    /// `tabellion_storage_low`: 1 if registration is refused for lack of free space.
    pub low: IntGauge,
}

impl StorageMetrics {
    /// Registers the metrics.
    pub fn new(registry: &MetricRegistry) -> Result<Self, Error> {
        Ok(Self {
            commit_unknown: registry.counter(
                "tabellion_storage_commit_unknown_total",
                "Commits whose outcome had to be looked up",
            )?,
            fence_epoch: registry.gauge("tabellion_storage_fence_epoch", "The fencing epoch in force")?,
            frozen: registry
                .gauge("tabellion_log_frozen", "Whether the log is frozen for ever")?,
            free_bytes: registry.gauge(
                "tabellion_storage_free_bytes",
                "Free bytes in the state directory or in the folder of a SQLite database, whichever has fewer",
            )?,
            low: registry.gauge(
                "tabellion_storage_low",
                "Whether registration is refused since fewer than min_free_bytes are free",
            )?,
        })
    }
}

/// Metrics of the inbox.
pub struct InboxMetrics {
    /// `tabellion_inbox_rows`: accepted statements that are not in the log yet.
    pub rows: IntGauge,
    /// `tabellion_inbox_bytes`: bytes of the submissions in the inbox.
    pub bytes: IntGauge,
    /// `tabellion_inbox_oldest_seconds`: age of the oldest statement in the inbox; zero when it is empty.
    pub oldest: IntGauge,
    /// `tabellion_inbox_refused_total`: accepted statements that this process refused for good.
    pub refused: IntCounter,
}

impl InboxMetrics {
    /// Registers the metrics.
    pub fn new(registry: &MetricRegistry) -> Result<Self, Error> {
        Ok(Self {
            rows: registry
                .gauge("tabellion_inbox_rows", "Accepted statements that are not in the log yet")?,
            bytes: registry.gauge("tabellion_inbox_bytes", "Bytes of their submissions")?,
            oldest: registry.gauge(
                "tabellion_inbox_oldest_seconds",
                "Age of the oldest accepted statement that is not in the log yet",
            )?,
            refused: registry
                .counter("tabellion_inbox_refused_total", "Accepted statements that were refused for good")?,
        })
    }
}

/// Metrics of the lookup index.
pub struct LookupIndexMetrics {
    /// `tabellion_index_lag_leaves`: committed leaves that are not in the lookup index yet.
    pub lag: IntGauge,
    /// `tabellion_index_head_size_leaves`: number of leaves that the newest known head of the lookup index commits to.
    pub head_size: IntGauge,
    /// `tabellion_index_head_timestamp_seconds`: time of that head, in Unix seconds.
    pub head_timestamp: IntGauge,
}

impl LookupIndexMetrics {
    /// Registers the metrics.
    pub fn new(registry: &MetricRegistry) -> Result<Self, Error> {
        Ok(Self {
            lag: registry
                .gauge("tabellion_index_lag_leaves", "Committed leaves that searches do not find yet")?,
            head_size: registry.gauge(
                "tabellion_index_head_size_leaves",
                "Leaves that the newest known head of the search index commits to",
            )?,
            head_timestamp: registry
                .gauge("tabellion_index_head_timestamp_seconds", "When that head was made")?,
        })
    }
}

/// Metrics of the check of the storage.
pub struct FsckMetrics {
    /// `tabellion_fsck_last_success_timestamp_seconds`: end of the last check of the whole storage without findings, in Unix
    /// seconds.
    pub last_success: IntGauge,
    /// `tabellion_fsck_mismatch_total`: findings of the storage check.
    pub mismatches: IntCounter,
    /// `tabellion_fsck_progress_leaves`: leaves that the storage check in progress has passed.
    pub progress: IntGauge,
}

impl FsckMetrics {
    /// Registers the metrics.
    pub fn new(registry: &MetricRegistry) -> Result<Self, Error> {
        Ok(Self {
            last_success: registry.gauge(
                "tabellion_fsck_last_success_timestamp_seconds",
                "When a check of the whole storage last found nothing",
            )?,
            mismatches: registry
                .counter("tabellion_fsck_mismatch_total", "Findings of the check of the storage")?,
            progress: registry
                .gauge("tabellion_fsck_progress_leaves", "Leaves that the check under way has passed")?,
        })
    }
}
