//! Export of spans to an OpenTelemetry collector: OTLP over HTTP, in batches, on separate threads.
//!
//! Requests never wait for the collector. Spans that it does not accept in time are dropped, with a line in the log.
//! Only spans of a daemon's own `tracing` targets are exported: no events (a log line may contain any name), and no spans of
//! libraries. A [`TraceContext`] of a client makes a span a child of the client's own.
//!
//! The usual variables apply: `OTEL_EXPORTER_OTLP_ENDPOINT` if the configuration names no collector, and
//! `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_RESOURCE_ATTRIBUTES` in any case.
//!
//! Not here: the spans and their attributes, which each daemon has of its own; metrics, which Prometheus scrapes; logs.

mod export;
pub mod limits;
mod trace_context;

pub use export::{ExportError, ExportedSpans, SpanExport};
pub use trace_context::{TraceContext, continue_trace, is_sampled};
