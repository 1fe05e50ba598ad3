//! `tabellion gateway run`: runs the gateway until it is stopped.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

use clap::Args;
use gateway::config::{Mistakes, Server};
use gateway::{Config, Gateway, StartError};
use serde::Serialize;
use serving::signals::{hangups, stop_signal};
use url::Url;

use super::config_file::{self, DEV_LISTEN};
use super::dev_mode::{self, WithoutVap};
use crate::commands::logging::LogLevel;
use crate::commands::spans::{SpanSource, Spans};
use crate::commands::storage_fault;
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::exposed_settings;
use crate::runtime;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway run --dev --upstream http://127.0.0.1:3001/mcp")]
pub struct Run {
    /// A local gateway for trials, next to `serve --dev`: one endpoint, /mcp, loopback only
    #[arg(long)]
    dev: bool,
    /// The upstream MCP server (dev)
    #[arg(long, value_name = "URL", requires = "dev")]
    upstream: Option<Url>,
    /// The log [default: that of ./tabellion-dev] (dev)
    #[arg(long, value_name = "URL", requires = "dev")]
    log: Option<String>,
    /// The address for clients [default: 127.0.0.1:7400] (dev)
    #[arg(long, value_name = "ADDRESS", requires = "dev")]
    listen: Option<SocketAddr>,
    /// How callers without VAP are treated (dev)
    #[arg(long, value_name = "WHAT", requires = "dev", value_enum)]
    without_vap: Option<WithoutVap>,
    /// Start servers even if they could read the gateway's keys
    #[arg(long)]
    unsafe_shared_user: bool,
    /// A server to start instead, with its arguments (dev)
    #[arg(last = true, value_name = "COMMAND", requires = "dev", conflicts_with = "upstream")]
    command: Vec<String>,
}

impl Run {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        gateway::isolation::protect_own_memory()?;
        let runtime = runtime::multi_threaded()?;
        runtime.block_on(self.serve(context))
    }

    async fn serve(self, context: &Context) -> Result<(), Failure> {
        // From here on, SIGHUP does not terminate the process.
        let hangup = hangups()?;
        let mut stop = std::pin::pin!(stop_signal());
        let path = if self.dev { None } else { Some(config_file::find(context)?) };
        let mut config = match &path {
            Some(path) => config_file::read(path)?,
            None => self.dev_config()?,
        };
        config.unsafe_shared_user = self.unsafe_shared_user;
        let spans = Spans::start(SpanSource::Gateway, config.otlp.as_ref())?;
        let usual = if self.dev { "warn" } else { "info" };
        let _level = LogLevel::at_usual_level(spans.listener(), usual, &context.console)?;
        for warning in exposed_settings::gateway::warnings(&config, path.as_deref()) {
            tracing::warn!(setting = warning.key, "{}", warning.what);
        }
        let gateway = tokio::select! {
            started = Gateway::start(config.clone()) => started.map_err(not_started)?,
            () = &mut stop => return Ok(()),
        };
        context.console.announce(&GatewayAnnouncement::of(&config, &gateway))?;
        gateway.run_until(|| reread(path.as_deref(), &config), hangup, stop).await;
        spans.finish().await;
        Ok(())
    }

    fn dev_config(&self) -> Result<Config, Failure> {
        let listen = self.listen.unwrap_or(DEV_LISTEN);
        let without_vap = self.without_vap.unwrap_or(WithoutVap::Deny);
        dev_mode::config(self.server()?, self.log.as_deref(), listen, without_vap)
    }

    fn server(&self) -> Result<Server, Failure> {
        match (&self.upstream, self.command.is_empty()) {
            (Some(url), _) => Ok(Server::http(url.clone())),
            (None, false) => Ok(Server::command(self.command.clone())),
            (None, true) => {
                Err(Failure::new(Exit::Usage, "usage", "which server? --upstream URL, or -- COMMAND")
                    .hint("tabellion gateway run --dev --upstream http://127.0.0.1:3001/mcp"))
            }
        }
    }
}

/// Reads the configuration again; with `--dev` there is no file, so it stays the same.
fn reread(path: Option<&Path>, first: &Config) -> Result<Config, Mistakes> {
    match path {
        Some(path) => {
            let read = Config::from_file(path)?;
            Ok(Config { unsafe_shared_user: first.unsafe_shared_user, ..read })
        }
        None => Ok(first.clone()),
    }
}

pub(super) fn not_started(error: StartError) -> Failure {
    let (exit, code) = match (&error, error.io_kind().and_then(storage_fault::code)) {
        (_, Some(code)) => (Exit::TryAgain, code),
        (StartError::Keys(_), None) => (Exit::Failure, "key-unusable"),
        (StartError::Evidence(_), None) => (Exit::Failure, "gateway-evidence"),
        (StartError::Listen(_), None) => (Exit::Failure, "cannot-listen"),
        (StartError::NotIsolated(_), None) => (Exit::Failure, "not-isolated"),
        (_, None) => (Exit::Usage, "gateway-config"),
    };
    Failure::new(exit, code, "the gateway cannot start").fact("because", error.to_string())
}

/// The announcement when the gateway serves, for which scripts wait.
#[derive(Serialize)]
struct GatewayAnnouncement {
    issuer: String,
    listen: String,
    admin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approvals: Option<String>,
    routes: Vec<Endpoint>,
    log: String,
    state: String,
    evidence_kid: String,
    verdict_kid: String,
    dev: bool,
}

#[derive(Serialize)]
struct Endpoint {
    url: String,
    path: String,
    without_vap: &'static str,
}

impl GatewayAnnouncement {
    fn of(config: &Config, gateway: &Gateway) -> Self {
        use scitt::Signer;
        let address = gateway.address();
        let endpoint = |route: &gateway::config::Route| Endpoint {
            url: format!("http://{address}{}", route.path),
            path: route.path.clone(),
            without_vap: route.without_vap.as_str(),
        };
        let kid = gateway.keys().evidence.public_key().thumbprint();
        Self {
            issuer: config.issuer.clone(),
            listen: address.to_string(),
            admin: gateway.admin_address().map(|address| address.to_string()),
            approvals: gateway.approvals_address().map(|address| address.to_string()),
            routes: config.routes.iter().map(endpoint).collect(),
            log: config.log.url.clone(),
            state: config.state.display().to_string(),
            evidence_kid: data_encoding::BASE64URL_NOPAD.encode(&kid),
            verdict_kid: gateway.keys().verdict_kid(),
            dev: config.dev,
        }
    }
}

impl Report for GatewayAnnouncement {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let dev = if self.dev { " (dev)" } else { "" };
        writeln!(out, "Gateway{dev}   {}", safe(&self.issuer))?;
        for route in &self.routes {
            writeln!(out, "  endpoint   {}   calls without VAP: {}", route.url, route.without_vap)?;
        }
        writeln!(out, "  log        {}", safe(&self.log))?;
        writeln!(out, "  keys       evidence {}, verdicts {}", self.evidence_kid, self.verdict_kid)?;
        writeln!(out, "  state      {}", safe(&self.state))?;
        if let Some(admin) = &self.admin {
            writeln!(out, "  health     http://{admin}/readyz, metrics http://{admin}/metrics")?;
        }
        if let Some(approvals) = &self.approvals {
            writeln!(
                out,
                "  approvers  tabellion gateway approval list --url http://{approvals} --key FILE"
            )?;
        }
        if self.dev {
            writeln!(out, "  warning    dev mode: no TLS, no tokens, loopback only. Not for production.")?;
        }
        Ok(())
    }
}
