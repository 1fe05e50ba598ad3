//! Metrics of streams of entries, and the reasons for the end of one, as metrics and last events name them.

use prometheus::{Error, IntCounterVec, IntGauge};
use serving::metrics::MetricRegistry;

/// The reason for the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The reader disconnected.
    Left,
    /// The reader took nothing for [`TailLimits::patience`](crate::limits::TailLimits::patience).
    TooSlow,
    /// The service stops.
    Stopping,
    /// The store could not be read.
    Unavailable,
}

impl StreamEnd {
    const ALL: [StreamEnd; 4] =
        [StreamEnd::Left, StreamEnd::TooSlow, StreamEnd::Stopping, StreamEnd::Unavailable];

    /// The name of the reason, in the last event and in metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::TooSlow => "too-slow",
            Self::Stopping => "stopping",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Metrics of streams of entries.
pub struct StreamMetrics {
    /// `tabellion_entry_streams`: open streams.
    pub open: IntGauge,
    ended: IntCounterVec,
}

impl StreamMetrics {
    /// Registers the metrics, with every reason at zero: a rate over a counter that appears only with its first event
    /// misses that event.
    pub fn new(registry: &MetricRegistry) -> Result<Self, Error> {
        let open = registry.gauge("tabellion_entry_streams", "Streams of entries that are open")?;
        let ended = registry.counters(
            "tabellion_entry_streams_ended_total",
            "Streams of entries that ended, by reason",
            &["reason"],
        )?;
        for end in StreamEnd::ALL {
            ended.with_label_values(&[end.reason()]);
        }
        Ok(Self { open, ended })
    }

    /// Records the end of a stream.
    pub fn ended(&self, end: StreamEnd) {
        self.ended.with_label_values(&[end.reason()]).inc();
    }
}
