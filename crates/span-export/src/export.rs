//! A running export.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use thiserror::Error;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use url::Url;

use crate::limits::LAST_SPANS_TIME;

/// Path for traces, below the collector's URL.
const PATH: &str = "v1/traces";
/// Environment variables that name a collector.
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The spans of a daemon.
#[derive(Clone, Copy, Debug)]
pub struct ExportedSpans {
    /// The `service.name`.
    pub service: &'static str,
    /// The `tracing` targets of the spans; nothing else uses them.
    pub targets: &'static [&'static str],
}

/// Error: spans cannot be exported.
#[derive(Debug, Error)]
#[error("no spans can be sent: {0}")]
pub struct ExportError(String);

/// A running export of spans.
pub struct SpanExport {
    provider: SdkTracerProvider,
    spans: ExportedSpans,
}

impl SpanExport {
    /// Starts the export to this collector, or to the one that the environment names; `None` if there is neither.
    /// `instance` identifies this process in `service.instance.id`.
    ///
    /// # Errors
    /// [`ExportError`] if the exporter cannot be built, for example with an invalid URL in the environment.
    pub fn start(
        spans: ExportedSpans,
        collector: Option<&Url>,
        instance: &str,
    ) -> Result<Option<Self>, ExportError> {
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
        let exporter = exporter.build().map_err(|error| ExportError(error.to_string()))?;
        let attributes = [
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance.to_owned()),
        ];
        let resource =
            Resource::builder().with_service_name(spans.service).with_attributes(attributes).build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Some(Self { provider, spans }))
    }

    /// The `tracing` layer that passes the daemon's spans to the export.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let targets = self.spans.targets;
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(self.spans.service))
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(move |data| data.is_span() && targets.contains(&data.target())))
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
