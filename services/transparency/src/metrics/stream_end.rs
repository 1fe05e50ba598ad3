//! The reasons for the end of a stream of entries, as metrics and last events name them.

/// The reason for the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The reader disconnected.
    Left,
    /// The reader took nothing for [`TailLimits::patience`](crate::limits::TailLimits::patience).
    TooSlow,
    /// The service stops .
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

/// The names of all reasons.
pub fn reasons() -> [&'static str; 4] {
    StreamEnd::ALL.map(StreamEnd::reason)
}
