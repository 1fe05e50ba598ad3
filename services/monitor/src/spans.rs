//! Spans of the monitor: one for each round of a log, and below it one for each check that sends requests.
//!
//! They have names from the configuration and outcomes, never text from a log. Those of checks are at the level debug, so
//! that the log's lines have the round only; an export takes every level.

use serving::request_span::fail;
use tracing::Span;
use tracing::field::Empty;

use crate::alarm::MonitorExit;
use crate::check_name::CheckName;
use crate::round::{Outcome, Round};
use crate::round_results::RoundResults;

/// The `tracing` target of the spans; nothing else uses it.
const TARGET: &str = "monitor::spans";

/// The spans of the monitor, for an export.
#[cfg(feature = "otlp")]
pub const SPANS: span_export::ExportedSpans =
    span_export::ExportedSpans { service: "tabellion-monitor", targets: &[TARGET] };

/// The span of a round of the log or service with this name.
pub fn round(log: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "round",
        log,
        "tree.size" = Empty,
        "round.alarms" = Empty,
        otel.status_code = Empty,
        "error.type" = Empty,
    )
}

/// Records the result of a round.
pub fn end_round(span: &Span, round: &Round) {
    if let Some(size) = round.verified {
        span.record("tree.size", size);
    }
    span.record("round.alarms", round.alarms.len());
    let exit = round.exit();
    if exit != MonitorExit::Success {
        fail(span, exit.name());
    }
}

/// The span of a check, below the round's.
pub fn check(name: CheckName) -> Span {
    tracing::debug_span!(
        target: TARGET,
        "check",
        otel.name = name.name(),
        otel.status_code = Empty,
        "error.type" = Empty,
    )
}

/// Records the result of a check, as far as it is in the results.
pub fn end_check(span: &Span, name: CheckName, results: &RoundResults) {
    match results.outcome(name) {
        Some(Outcome::Failed) => fail(span, "failed"),
        Some(Outcome::Unanswered) => fail(span, "unanswered"),
        Some(Outcome::Ok | Outcome::NotChecked) | None => {}
    }
}
