//! The export of a daemon's spans to a collector, in builds with the feature `otlp`.

use url::Url;

use crate::commands::logging::Listener;
use crate::console::{Exit, Failure};

/// A daemon whose spans can be exported.
#[derive(Clone, Copy, Debug)]
pub enum SpanSource {
    /// `tabellion gateway`.
    Gateway,
    /// `tabellion serve`.
    Log,
    /// `tabellion monitor run`.
    Monitor,
    /// `tabellion registry serve`.
    Registry,
    /// `tabellion vrf serve`.
    Verification,
    /// `tabellion witness serve`.
    Witness,
}

impl SpanSource {
    #[cfg(feature = "otlp")]
    fn exported(self) -> span_export::ExportedSpans {
        match self {
            Self::Gateway => gateway::telemetry::SPANS,
            Self::Log => transparency::SPANS,
            Self::Monitor => monitor::SPANS,
            Self::Registry => registry_server::SPANS,
            Self::Verification => verification::SPANS,
            Self::Witness => witness::SPANS,
        }
    }

    /// The failure for a collector that cannot be used.
    fn unusable(self, why: String) -> Failure {
        let code = match self {
            Self::Gateway => "gateway-config",
            Self::Log => "setting-unusable",
            Self::Monitor => "monitor-config",
            Self::Verification => "verification-config",
            Self::Registry | Self::Witness => "usage",
        };
        Failure::new(Exit::Usage, code, "the spans cannot be sent to a collector").fact("because", why)
    }
}

/// The exporter, if there is one.
pub struct Spans {
    #[cfg(feature = "otlp")]
    export: Option<span_export::SpanExport>,
}

#[cfg(feature = "otlp")]
impl Spans {
    /// Starts the export to this collector, or to the one in `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn start(source: SpanSource, collector: Option<&Url>) -> Result<Self, Failure> {
        let instance = uuid::Uuid::new_v4().to_string();
        let export = span_export::SpanExport::start(source.exported(), collector, &instance);
        export.map(|export| Self { export }).map_err(|error| source.unusable(error.to_string()))
    }

    /// The tracing layer that passes spans to the exporter.
    pub fn listener(&self) -> Option<Listener> {
        let export = self.export.as_ref()?;
        Some(Box::new(export.layer()))
    }

    /// Sends the remaining spans.
    pub async fn finish(self) {
        if let Some(export) = self.export {
            export.finish().await;
        }
    }
}

#[cfg(not(feature = "otlp"))]
impl Spans {
    /// Refuses a configured collector, because this build has no exporter.
    pub fn start(source: SpanSource, collector: Option<&Url>) -> Result<Self, Failure> {
        match collector {
            None => Ok(Self {}),
            Some(_) => {
                Err(source.unusable("this build sends none: build it with --features otlp".to_owned()))
            }
        }
    }

    /// Returns `None`, because there is no exporter.
    pub fn listener(&self) -> Option<Listener> {
        None
    }

    /// Does nothing, because there is no exporter.
    pub async fn finish(self) {}
}
