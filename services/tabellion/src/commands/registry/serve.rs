//! `tabellion registry serve`: serves a registry and its revocation deltas over HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use registry_server::files::UnusableFile;
use registry_server::{Config, RegistryServer, StartError};
use serving::collector;
use serving::problem::ErrorDocumentation;
use serving::signals::stop_signal;
use url::Url;

use super::{not_a_registry, not_deltas, operator_keys, refused};
use crate::commands::logging::LogLevel;
use crate::commands::spans::{SpanSource, Spans};
use crate::console::{Exit, Failure, files, members, safe};
use crate::context::Context;
use crate::runtime;

#[derive(Debug, Args)]
pub struct Serve {
    /// The registry, served at /registry.json; a change of the file is served at once
    file: PathBuf,
    /// A key of its operator: a file or a did:key; may be given more than once
    #[arg(long, value_name = "KEY", required = true)]
    registry_key: Vec<String>,
    /// The list of revocation deltas, served at /deltas.json
    #[arg(long, value_name = "FILE")]
    deltas: Option<PathBuf>,
    /// The address for gateways
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7394")]
    listen: SocketAddr,
    /// The address for metrics and health
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
    /// Send spans to this OpenTelemetry collector
    #[arg(long, value_name = "URL", value_parser = collector::parse)]
    otlp: Option<Url>,
    /// Where the codes of errors are documented
    #[arg(long = "error-docs", value_name = "URL", value_parser = ErrorDocumentation::parse)]
    error_documentation: Option<ErrorDocumentation>,
}

impl Serve {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = runtime::multi_threaded()?;
        runtime.block_on(self.serve(context))
    }

    async fn serve(self, context: &Context) -> Result<(), Failure> {
        let stop = stop_signal();
        let spans = Spans::start(SpanSource::Registry, self.otlp.as_ref())?;
        let _level = LogLevel::at_usual_level(spans.listener(), "info", &context.console)?;
        let config = Config {
            listen: self.listen,
            admin_listen: self.admin_listen,
            registry: self.file.clone(),
            deltas: self.deltas.clone(),
            operators: operator_keys(&self.registry_key)?,
            error_documentation: self.error_documentation.clone().unwrap_or_default(),
        };
        let server = RegistryServer::start(config).await.map_err(|error| self.not_started(error))?;
        let url = format!("http://{}", server.address());
        let version = server
            .version()
            .map(|version| format!("{}.{}", version.epoch, version.sequence))
            .unwrap_or_default();
        let admin = server.admin_address().map(|address| address.to_string());
        context.console.print(&members! { url, admin, version }, |out| {
            writeln!(out, "serving version {} at {}/registry.json", safe(&version), safe(&url))
        })?;
        server.run_until(stop).await;
        spans.finish().await;
        Ok(())
    }

    fn not_started(&self, error: StartError) -> Failure {
        match error {
            StartError::Registry(why) => unusable(&self.file, why, not_a_registry),
            StartError::Deltas(why) => {
                unusable(self.deltas.as_deref().unwrap_or(&self.file), why, not_deltas)
            }
            StartError::Listen(ref bind) => not_served(bind.code(), &error),
            StartError::Metrics(_) => not_served("not-started", &error),
        }
    }
}

fn not_served(code: &'static str, error: &StartError) -> Failure {
    Failure::new(Exit::Failure, code, "the registry is not served").fact("because", error.to_string())
}

/// Returns the failure for a file that cannot be served.
fn unusable(
    file: &Path,
    why: UnusableFile,
    malformed: fn(&Path, &jose::json::JsonError) -> Failure,
) -> Failure {
    match why {
        UnusableFile::Malformed(error) => malformed(file, &error),
        UnusableFile::Refused(error) => refused(file, &error),
        UnusableFile::Read(error) => files::unreadable(file, &error),
        UnusableFile::TooLong(_) => {
            Failure::new(Exit::Failure, "file-too-large", format!("{} {why}", file.display()))
        }
    }
}
