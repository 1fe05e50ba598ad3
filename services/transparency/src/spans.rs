//! Spans of the log: the stages of a registration, below the span of its request (`serving::request_span`).
//!
//! A batch has spans of its own (`sequencer`), as it serves many requests. Stages are at the level debug, so that the log's
//! lines have the request only; an export takes every level.

use tracing::Span;
use tracing::field::Empty;

use crate::metrics::latency::Stage;

/// The `tracing` target of the spans; nothing else uses it.
const TARGET: &str = "transparency::spans";

/// The spans of the service, for an export.
#[cfg(feature = "otlp")]
pub const SPANS: span_export::ExportedSpans = span_export::ExportedSpans {
    service: "tabellion-log",
    targets: &[TARGET, serving::request_span::TARGET, sequencer::SPAN_TARGET],
};

/// The span of a stage of a registration, below the current one. It has the stage's label as its name.
pub fn stage(stage: Stage) -> Span {
    tracing::debug_span!(
        target: TARGET,
        "stage",
        otel.name = stage.label(),
        otel.status_code = Empty,
        "error.type" = Empty,
    )
}
