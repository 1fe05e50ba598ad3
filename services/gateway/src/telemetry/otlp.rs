//! Export of spans to an OpenTelemetry collector: OTLP over HTTP, in batches, on separate threads.
//!
//! Calls never wait for the collector. Spans that it does not accept in time are dropped, with a line in the log. Only
//! spans of [`telemetry`](super) are exported: no events (a log line may contain any name), and no spans of libraries.
//!
//! If a client sends a trace context in `params._meta` (SEP-414) or in HTTP headers, the gateway's spans become
//! children of its span. Forwarded messages are not changed: a server sees the client's context, not the gateway's.
//!
//! The usual variables apply: `OTEL_EXPORTER_OTLP_ENDPOINT` if the configuration names no collector, and
//! `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_RESOURCE_ATTRIBUTES` in any case.
//!
//! Not here: metrics, which Prometheus scrapes, and logs.

use std::time::Duration;

use http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use thiserror::Error;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use url::Url;

use crate::frame::Frame;
use crate::limits::{LAST_SPANS_TIME, MAX_TRACE_STATE};

/// The `service.name` of the gateway's spans.
const SERVICE: &str = "tabellion-gateway";
/// Path for traces, below the collector's URL.
const PATH: &str = "v1/traces";
/// Environment variables that name a collector.
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// The two parts of a W3C trace context, in `_meta` and as HTTP headers.
const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// Error: spans cannot be exported.
#[derive(Debug, Error)]
#[error("no spans can be sent: {0}")]
pub struct NoExport(String);

/// A running export of spans.
pub struct Export {
    provider: SdkTracerProvider,
}

impl Export {
    /// Starts the export to this collector, or to the one that the environment names; `None` if there is neither.
    /// `instance` identifies this process in `service.instance.id`.
    ///
    /// # Errors
    /// [`NoExport`] if the exporter cannot be built, for example with an invalid URL in the environment.
    pub fn start(collector: Option<&Url>, instance: &str) -> Result<Option<Self>, NoExport> {
        let named = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if collector.is_none() && !VARIABLES.iter().any(named) {
            return Ok(None);
        }
        // An error means that a provider is installed already; it is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut exporter = SpanExporter::builder().with_http();
        if let Some(collector) = collector {
            exporter = exporter.with_endpoint(below(collector));
        }
        let exporter = exporter.build().map_err(|error| NoExport(error.to_string()))?;
        let attributes = [
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance.to_owned()),
        ];
        let resource = Resource::builder().with_service_name(SERVICE).with_attributes(attributes).build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Some(Self { provider }))
    }

    /// The `tracing` layer that passes the gateway's spans to the export.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|data| data.is_span() && data.target() == super::TARGET))
    }

    /// Sends the remaining spans, at most for [`LAST_SPANS_TIME`]: an unresponsive collector must not delay the stop.
    pub async fn finish(self) {
        let last = move || self.provider.shutdown_with_timeout(LAST_SPANS_TIME);
        let done =
            tokio::time::timeout(LAST_SPANS_TIME + Duration::from_secs(1), tokio::task::spawn_blocking(last));
        if !matches!(done.await, Ok(Ok(Ok(())))) {
            tracing::warn!("the last spans did not reach the collector");
        }
    }
}

fn below(collector: &Url) -> String {
    format!("{}/{PATH}", collector.as_str().trim_end_matches('/'))
}

/// Makes a new span a child of the client's span: of the trace context in the message, otherwise of the one in the HTTP
/// headers. If both are present, the span links to the latter.
pub fn continued(span: &Span, frame: &Frame, headers: &HeaderMap) {
    let said =
        remote(&ClientTraceContext { parent: frame.meta_string(PARENT), state: frame.meta_string(STATE) });
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let around = remote(&ClientTraceContext { parent: header(PARENT), state: header(STATE) });
    // A span that is not exported needs no parent.
    match (said, around) {
        (None, None) => {}
        (None, Some(only)) => drop(span.set_parent(below_of(only))),
        (Some(parent), around) => {
            drop(span.set_parent(below_of(parent.clone())));
            if let Some(around) = around.filter(|around| around.span_id() != parent.span_id()) {
                span.add_link(around);
            }
        }
    }
}

/// Returns whether the span is sampled, and so exported.
pub fn is_sent(span: &Span) -> bool {
    span.context().span().span_context().is_sampled()
}

fn below_of(parent: SpanContext) -> Context {
    Context::new().with_remote_span_context(parent)
}

/// The client's trace context, if it is valid.
fn remote(said: &ClientTraceContext) -> Option<SpanContext> {
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), said);
    let context = context.span().span_context().clone();
    context.is_valid().then_some(context)
}

/// A trace context as the client wrote it.
struct ClientTraceContext {
    parent: Option<String>,
    state: Option<String>,
}

impl Extractor for ClientTraceContext {
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
