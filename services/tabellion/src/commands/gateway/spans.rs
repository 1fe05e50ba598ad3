//! The export of the gateway's spans to a collector, in builds with the feature `otlp`.

use url::Url;

use crate::commands::serve::logging::Listener;
use crate::console::{Exit, Failure};

/// The exporter, if there is one.
pub struct Spans {
    #[cfg(feature = "otlp")]
    export: Option<gateway::telemetry::otlp::Export>,
}

#[cfg(feature = "otlp")]
impl Spans {
    /// Starts the export to this collector, or to the one in `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn start(collector: Option<&Url>) -> Result<Self, Failure> {
        let instance = uuid::Uuid::new_v4().to_string();
        match gateway::telemetry::otlp::Export::start(collector, &instance) {
            Ok(export) => Ok(Self { export }),
            Err(error) => Err(unusable(error.to_string())),
        }
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
    pub fn start(collector: Option<&Url>) -> Result<Self, Failure> {
        match collector {
            None => Ok(Self {}),
            Some(_) => Err(unusable("this build sends none: build it with --features otlp".to_owned())),
        }
    }

    /// Returns `None`, because there is no exporter.
    pub fn listener(&self) -> Option<Listener> {
        None
    }

    /// Does nothing, because there is no exporter.
    pub async fn finish(self) {}
}

fn unusable(why: String) -> Failure {
    Failure::new(Exit::Usage, "gateway-config", "the spans of the gateway cannot be sent")
        .fact("because", why)
}
