//! The span of each request, by the HTTP conventions of OpenTelemetry.
//!
//! It has the request's number, method, route and status, never texts of clients or tokens. Spans are part of the log's
//! lines; with the feature `otlp`, a span continues the client's trace, and a daemon exports it (`span-export`).
//!
//! Not here: spans of the work that a request starts, which each daemon has of its own.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::request_id::RequestId;

/// The `tracing` target of these spans; nothing else uses it.
pub const TARGET: &str = "serving::request_span";

/// Middleware: serves a request in its span.
pub async fn in_span(request: Request, next: Next) -> Response {
    let id = RequestId::of(request.extensions());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let span = begin(id, request.method(), route, request.headers());
    let response = next.run(request).instrument(span.clone()).await;
    end(&span, response.status());
    response
}

/// The span of a request, a child of the client's own span if the headers name one. `route` is the pattern that the path
/// matches; empty if it matches none.
pub fn begin(id: RequestId, method: &Method, route: &str, headers: &HeaderMap) -> Span {
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
    continue_trace(&span, headers);
    span
}

/// Records the answer to a request.
pub fn end(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        fail(span, status.as_str());
    }
}

/// Records a failure in a span with the fields `error.type` and `otel.status_code`.
pub fn fail(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

/// The name of a method; `_OTHER` for one that no daemon has, because names of spans and labels of metrics must be few.
pub(crate) fn known(method: &Method) -> &str {
    match *method {
        Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::DELETE | Method::OPTIONS => {
            method.as_str()
        }
        _ => "_OTHER",
    }
}

#[cfg(feature = "otlp")]
fn continue_trace(span: &Span, headers: &HeaderMap) {
    span_export::continue_trace(span, &[span_export::TraceContext::of_headers(headers)]);
}

/// Does nothing: without the feature `otlp`, spans have no remote parent.
#[cfg(not(feature = "otlp"))]
fn continue_trace(_span: &Span, _headers: &HeaderMap) {}
