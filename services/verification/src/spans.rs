//! Spans: one for each request by the HTTP conventions of OpenTelemetry, and below that of a request which started a job
//! those of its checks and of its signature, which may end later.
//!
//! They have names and outcomes, never the work, texts of clients or tokens. Spans are part of the log's lines; with the
//! feature `otlp` they are also exported to a collector (`span-export`).

use http::{HeaderMap, Method, StatusCode};
use serving::request_id::RequestId;
use tracing::Span;
use tracing::field::Empty;

/// The `tracing` target of the spans; nothing else uses it.
const TARGET: &str = "verification::spans";

/// The spans of the service, for an export.
#[cfg(feature = "otlp")]
pub const SPANS: span_export::ExportedSpans =
    span_export::ExportedSpans { service: "tabellion-verification", target: TARGET };

/// The span of a request, a child of the client's own span if the headers name one. `route` is the pattern that the path
/// matches; empty if it matches none.
pub fn request(id: RequestId, method: &Method, route: &str, headers: &HeaderMap) -> Span {
    let method = known(method);
    let span = tracing::info_span!(
        target: TARGET,
        "request",
        otel.name = format!("{method} {route}").trim_end(),
        otel.kind = "server",
        otel.status_code = Empty,
        "request.id" = %id,
        "http.request.method" = method,
        "http.route" = route,
        "http.response.status_code" = Empty,
        "error.type" = Empty,
    );
    continued(&span, headers);
    span
}

/// Records the answer to a request.
pub fn answered(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        failed(span, status.as_str());
    }
}

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

/// Records a failure, by its code.
pub fn failed(span: &Span, code: &str) {
    span.record("error.type", code);
    span.record("otel.status_code", "ERROR");
}

/// The name of a method; `_OTHER` for one that the service does not have, because names of spans must be few.
fn known(method: &Method) -> &str {
    match *method {
        Method::GET | Method::HEAD | Method::POST | Method::OPTIONS => method.as_str(),
        _ => "_OTHER",
    }
}

#[cfg(feature = "otlp")]
fn continued(span: &Span, headers: &HeaderMap) {
    span_export::continue_trace(span, &[span_export::TraceContext::of_headers(headers)]);
}

/// Does nothing: without the feature `otlp`, spans have no remote parent.
#[cfg(not(feature = "otlp"))]
fn continued(_span: &Span, _headers: &HeaderMap) {}
