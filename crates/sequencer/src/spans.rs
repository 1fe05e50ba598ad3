//! Spans of a batch: its commit and the signature of its head. A batch serves many requests, so these spans are below none
//! of theirs.
//!
//! They are at the level debug: in the log's lines the metrics say enough, and an export takes every level.

use tracing::Span;
use tracing::field::Empty;

/// The `tracing` target of the spans; nothing else uses it.
pub const SPAN_TARGET: &str = "sequencer::spans";

/// The span of the commit of a batch with this many entries.
pub fn commit(entries: usize) -> Span {
    tracing::debug_span!(
        target: SPAN_TARGET,
        "commit batch",
        "batch.entries" = entries,
        otel.status_code = Empty,
        "error.type" = Empty,
    )
}

/// The span of the signatures over a head of this size.
pub fn signature(size: u64) -> Span {
    tracing::debug_span!(
        target: SPAN_TARGET,
        "sign head",
        "tree.size" = size,
        otel.status_code = Empty,
        "error.type" = Empty,
    )
}

/// Records a failure.
pub fn fail(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}
