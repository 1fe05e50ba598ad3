//! Limits of the export.

use std::time::Duration;

/// Maximum length in bytes of a `tracestate` that is adopted (the minimum that W3C Trace Context requires).
pub const MAX_TRACE_STATE: usize = 512;
/// Maximum time at shutdown for sending the last spans to the collector.
pub const LAST_SPANS_TIME: Duration = Duration::from_secs(2);
