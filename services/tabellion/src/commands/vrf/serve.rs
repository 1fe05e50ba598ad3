//! `tabellion vrf serve`: runs a verification service, which checks the work of agents and registers receipts.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use check_runner::RunnerProcess;
use clap::Args;
use scitt::{Algorithm, SigningKey};
use serde::Serialize;
use serving::signals::stop_signal;
use verification::{Config, LogConfig, StartError, VerificationService};
use verification_store::StoreError;

use crate::commands::logging::LogLevel;
use crate::commands::spans::{SpanSource, Spans};
use crate::commands::storage_fault;
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::dev_files::log_url;
use crate::runtime;
use crate::settings::daemon_file;
use crate::{keyfile, trust_file};

/// The default paths of the configuration file, in order of precedence.
const PLACES: &[&str] = &["verification.toml", "/etc/tabellion/verification.toml"];
/// The state folder of `vrf serve --dev`.
const DEV_STATE: &str = "tabellion-dev/verification";
/// The key of `vrf serve --dev`, created at its first start.
const DEV_KEY: &str = "tabellion-dev/verification.key";
/// The listener's address of `vrf serve --dev`.
const DEV_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7395);
/// Maximum time for checks in progress to end after a stop; the next start runs them again.
const DRAIN: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion vrf serve --config /etc/tabellion/verification.toml")]
pub struct Serve {
    /// A local service for trials, next to `serve --dev`: a key of its own, no tokens, loopback only
    #[arg(long)]
    dev: bool,
    /// The log [default: that of ./tabellion-dev] (dev)
    #[arg(long, value_name = "URL", requires = "dev")]
    log: Option<String>,
    /// The address for clients [default: 127.0.0.1:7395] (dev)
    #[arg(long, value_name = "ADDRESS", requires = "dev")]
    listen: Option<SocketAddr>,
    /// The address for health and metrics (dev)
    #[arg(long, value_name = "ADDRESS", requires = "dev")]
    admin_listen: Option<SocketAddr>,
}

impl Serve {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = runtime::multi_threaded()?;
        let ended = runtime.block_on(self.serve(context));
        runtime.shutdown_timeout(DRAIN);
        ended
    }

    async fn serve(self, context: &Context) -> Result<(), Failure> {
        let mut stop = std::pin::pin!(stop_signal());
        let config = if self.dev { self.dev_config()? } else { read(context)? };
        let usual = if self.dev { "warn" } else { "info" };
        let spans = Spans::start(SpanSource::Verification, config.otlp.as_ref())?;
        let _level = LogLevel::at_usual_level(spans.listener(), usual, &context.console)?;
        let key = if self.dev { dev_key(&config.key)? } else { keyfile::read(&config.key)? };
        let runner = Arc::new(RunnerProcess::start().map_err(no_runner)?);
        let service = tokio::select! {
            started = VerificationService::start(config.clone(), key, runner) => started.map_err(not_started)?,
            () = &mut stop => return Ok(()),
        };
        context.console.announce(&Announcement::of(&config, &service, self.dev))?;
        service.run_until(stop).await;
        spans.finish().await;
        Ok(())
    }

    fn dev_config(&self) -> Result<Config, Failure> {
        let listen = self.listen.unwrap_or(DEV_LISTEN);
        if !listen.ip().is_loopback() {
            return Err(Failure::new(Exit::Usage, "usage", "dev mode is loopback only"));
        }
        let trust = Some(PathBuf::from(trust_file::DEV)).filter(|path| self.log.is_none() && path.is_file());
        let log = LogConfig { url: log_url(self.log.as_deref())?, trust, token_file: None, ca_file: None };
        let config = Config::new(listen, DEV_STATE.into(), DEV_KEY.into(), log);
        Ok(Config { admin_listen: self.admin_listen, ..config })
    }
}

/// Reads the configuration file: `--config`, or else the first existing default.
fn read(context: &Context) -> Result<Config, Failure> {
    let path = daemon_file::find(context.config(), PLACES)?.ok_or_else(|| {
        Failure::new(Exit::NotFound, "config-not-found", "there is no verification.toml")
            .hint("tabellion vrf serve --dev")
    })?;
    daemon_file::read(&path, "verification-config", Config::from_toml)
}

/// Reads the key of `--dev`, or creates it.
fn dev_key(path: &Path) -> Result<SigningKey, Failure> {
    if path.is_file() {
        return keyfile::read(path);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    keyfile::generate(path, Algorithm::EdDsa)
}

fn no_runner(error: check_runner::StartError) -> Failure {
    Failure::new(Exit::Failure, "runner-failed", "the verification service does not start")
        .fact("because", error.to_string())
}

fn not_started(error: StartError) -> Failure {
    let storage_code = match &error {
        StartError::Store(StoreError::Full(_)) => Some(storage_fault::FULL),
        StartError::Store(StoreError::ReadOnly(_)) => Some(storage_fault::READ_ONLY),
        StartError::State { error, .. } => storage_fault::code(error.kind()),
        _ => None,
    };
    let exit = if storage_code.is_some() { Exit::TryAgain } else { Exit::Failure };
    let code = storage_code.unwrap_or(match &error {
        StartError::Key => "key-unusable",
        StartError::Store(StoreError::InUse(_)) => "verification-in-use",
        StartError::State { .. } | StartError::Store(_) => "verification-state",
        StartError::Listen(bind) => bind.code(),
        StartError::Log { .. } | StartError::Metrics(_) => "verification-config",
    });
    Failure::new(exit, code, "the verification service does not start").fact("because", error.to_string())
}

/// The announcement when the service serves, for which scripts wait.
#[derive(Serialize)]
struct Announcement {
    url: String,
    admin: Option<String>,
    issuer: String,
    log: String,
    state: String,
    dev: bool,
}

impl Announcement {
    fn of(config: &Config, service: &VerificationService, dev: bool) -> Self {
        Self {
            url: format!("http://{}", service.address()),
            admin: service.admin_address().map(|address| address.to_string()),
            issuer: service.issuer().to_owned(),
            log: config.log.url.clone(),
            state: config.state.display().to_string(),
            dev,
        }
    }
}

impl Report for Announcement {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let dev = if self.dev { " (dev)" } else { "" };
        writeln!(out, "Verifier{dev}   {}", safe(&self.issuer))?;
        writeln!(out, "  requests   {}/verify", self.url)?;
        writeln!(out, "  log        {}", safe(&self.log))?;
        writeln!(out, "  state      {}", safe(&self.state))?;
        if let Some(admin) = &self.admin {
            writeln!(out, "  health     http://{admin}/readyz, metrics http://{admin}/metrics")?;
        }
        if self.dev {
            writeln!(out, "  warning    dev mode: no tokens, loopback only. Not for production.")?;
        }
        Ok(())
    }
}
