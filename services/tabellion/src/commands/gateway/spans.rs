//! The gateway's spans on their way to a collector, in a build that can send them.

use url::Url;

use crate::commands::serve::logging::Listener;
use crate::console::{Exit, Failure};

/// What sends them, if anything does.
pub struct Spans {
    #[cfg(feature = "otlp")]
    export: Option<gateway::telemetry::otlp::Export>,
}

#[cfg(feature = "otlp")]
impl Spans {
    /// Begins to send them to this collector, or to that of the environment.
    pub fn start(collector: Option<&Url>) -> Result<Self, Failure> {
        let instance = uuid::Uuid::new_v4().to_string();
        match gateway::telemetry::otlp::Export::start(collector, &instance) {
            Ok(export) => Ok(Self { export }),
            Err(error) => Err(unusable(error.to_string())),
        }
    }

    /// What hears of them.
    pub fn listener(&self) -> Option<Listener> {
        let export = self.export.as_ref()?;
        Some(Box::new(export.layer()))
    }

    /// Sends the last.
    pub async fn finish(self) {
        if let Some(export) = self.export {
            export.finish().await;
        }
    }
}

#[cfg(not(feature = "otlp"))]
impl Spans {
    /// This build sends none, and says so to whoever asks for it.
    pub fn start(collector: Option<&Url>) -> Result<Self, Failure> {
        match collector {
            None => Ok(Self {}),
            Some(_) => Err(unusable("this build sends none: it is without the feature otlp".to_owned())),
        }
    }

    /// Nobody hears of them.
    pub fn listener(&self) -> Option<Listener> {
        None
    }

    /// There is no last one.
    pub async fn finish(self) {}
}

fn unusable(why: String) -> Failure {
    Failure::new(Exit::Usage, "gateway-config", "the spans of the gateway cannot be sent")
        .fact("because", why)
}
