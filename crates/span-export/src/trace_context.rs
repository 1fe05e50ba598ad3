//! Trace contexts of clients (W3C Trace Context): a daemon's span becomes a child of the client's span.

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::limits::MAX_TRACE_STATE;

/// The two parts of a trace context.
const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// A trace context as the client wrote it.
#[derive(Clone, Debug, Default)]
pub struct TraceContext {
    parent: Option<String>,
    state: Option<String>,
}

impl TraceContext {
    /// The trace context in the HTTP headers of a request.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        Self::of_members(|name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned))
    }

    /// The trace context whose parts `member` returns by their names, `traceparent` and `tracestate`.
    pub fn of_members(member: impl Fn(&str) -> Option<String>) -> Self {
        Self { parent: member(PARENT), state: member(STATE) }
    }

    /// The client's span; `None` if the context is not valid.
    fn span(&self) -> Option<SpanContext> {
        let context = TraceContextPropagator::new().extract_with_context(&Context::new(), self);
        let context = context.span().span_context().clone();
        context.is_valid().then_some(context)
    }
}

impl Extractor for TraceContext {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            PARENT => self.parent.as_deref(),
            STATE => self.state.as_deref().filter(|state| state.len() <= MAX_TRACE_STATE),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![PARENT, STATE]
    }
}

/// Makes a new span a child of the client's span: of the first valid context. If a later one names another span, the new
/// span links to that.
pub fn continue_trace(span: &Span, contexts: &[TraceContext]) {
    let mut spans = contexts.iter().filter_map(TraceContext::span);
    let Some(parent) = spans.next() else { return };
    // A span that is not exported needs no parent.
    drop(span.set_parent(Context::new().with_remote_span_context(parent.clone())));
    spans.filter(|other| other.span_id() != parent.span_id()).for_each(|other| span.add_link(other));
}

/// Returns whether the span is sampled, and so exported.
pub fn is_sampled(span: &Span) -> bool {
    span.context().span().span_context().is_sampled()
}
