//! The span of a decision about a checkpoint, below that of its request (`serving::request_span`).
//!
//! It is at the level debug, so that the log's lines have the request only; an export takes every level.

use http::StatusCode;
use serving::request_span::fail;
use tlog::checkpoint::Checkpoint;
use tlog::witness::AddCheckpoint;
use tracing::Span;
use tracing::field::Empty;

/// The `tracing` target of the span; nothing else uses it.
const TARGET: &str = "witness::spans";

/// The spans of the witness, for an export.
#[cfg(feature = "otlp")]
pub const SPANS: span_export::ExportedSpans = span_export::ExportedSpans {
    service: "tabellion-witness",
    targets: &[TARGET, serving::request_span::TARGET],
};

/// The span of a decision: verifying a checkpoint's growth, storing it and cosigning it.
pub fn add_checkpoint() -> Span {
    tracing::debug_span!(
        target: TARGET,
        "add-checkpoint",
        "log.origin" = Empty,
        "tree.size" = Empty,
        otel.status_code = Empty,
        "error.type" = Empty,
    )
}

/// Records the checkpoint that was cosigned. Those of strangers have no names here.
pub fn cosigned(span: &Span, request: &AddCheckpoint) {
    if let Ok(checkpoint) = Checkpoint::parse_text(request.checkpoint.text()) {
        span.record("log.origin", checkpoint.origin().as_str());
        span.record("tree.size", checkpoint.size().get());
    }
}

/// Records a refusal by the status of its answer.
pub fn refused(span: &Span, status: StatusCode) {
    fail(span, status.as_str());
}
