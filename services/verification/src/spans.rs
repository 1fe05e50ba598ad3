//! Spans below that of a request which started a job (`serving::request_span`): those of its checks and of its signature, which
//! may end later.
//!
//! They have names and outcomes, never the work, texts of clients or tokens. Spans are part of the log's lines; with the
//! feature `otlp` they are also exported to a collector (`span-export`).

use tracing::Span;
use tracing::field::Empty;

/// The `tracing` target of the spans; nothing else uses it.
const TARGET: &str = "verification::spans";

/// The spans of the service, for an export.
#[cfg(feature = "otlp")]
pub const SPANS: span_export::ExportedSpans = span_export::ExportedSpans {
    service: "tabellion-verification",
    targets: &[TARGET, serving::request_span::TARGET],
};

/// The span of a job's checks, below the current one.
pub fn checks(job: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "checks",
        job,
        otel.status_code = Empty,
        "check.tier" = Empty,
        "check.verdict" = Empty,
        "error.type" = Empty,
    )
}

/// Records the verdict in the span of a job's checks.
pub fn judged(span: &Span, tier: u8, verdict: &str) {
    span.record("check.tier", tier);
    span.record("check.verdict", verdict);
}

/// The span of a job's signature, below the current one: from the checks to the stored statement.
pub fn signature(job: &str) -> Span {
    tracing::info_span!(target: TARGET, "signature", job, otel.status_code = Empty, "error.type" = Empty)
}
