//! `tabellion serve`: start the transparency service.

pub mod config;
mod dev;
mod logging;

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;
use transparency::{Config, Halt, Service, StartError, stop_signal};

use crate::cli::Context;
use crate::console::{Exit, Failure, Report};
use crate::settings::SettingFlags;
use logging::LogLevel;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion serve --dev")]
pub struct Serve {
    /// A log to try things out with, in ./tabellion-dev: own keys, own issuer, no TLS, loopback only
    #[arg(long)]
    dev: bool,
    #[command(flatten)]
    flags: SettingFlags,
}

impl Serve {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            match self.dev {
                true => dev_mode(context, &self.flags).await,
                false => plain(context, &self.flags).await,
            }
        })
    }
}

async fn plain(context: &Context, flags: &SettingFlags) -> Result<(), Failure> {
    let settings = context.settings(flags.typed())?;
    let config = config::resolve(&settings)?;
    let level = LogLevel::start(&settings)?;
    let Some(service) = start(config).await? else { return Ok(()) };
    context.console.result(&Serving::of(&service))?;
    let reread = || reread(context, flags.typed(), &level);
    service.run_until(reread, stop_signal()).await.map_err(ended)
}

async fn dev_mode(context: &Context, flags: &SettingFlags) -> Result<(), Failure> {
    let dev = dev::prepare(context)?;
    let flags = flags.or(dev.settings());
    let settings = context.settings(flags.clone())?;
    let config = config::resolve(&settings)?;
    let level = LogLevel::start(&settings)?;
    let Some(service) = start(config).await? else { return Ok(()) };
    dev.introduce(context, &service).await?;
    service.run_until(|| reread(context, flags.clone(), &level), stop_signal()).await.map_err(ended)
}

/// The sequencer failed in a way after which nothing here is to be trusted.
fn ended(halt: Halt) -> Failure {
    Failure::new(Exit::Failure, "sequencer", "the service ended by itself").fact("because", halt.to_string())
}

/// Starts the service; `None` when it was told to stop before it had.
async fn start(config: Config) -> Result<Option<Service>, Failure> {
    tokio::select! {
        started = Service::start(config) => started.map(Some).map_err(not_started),
        () = stop_signal() => Ok(None),
    }
}

fn reread(context: &Context, flags: Vec<(&'static str, String)>, level: &LogLevel) -> Result<Config, String> {
    let reread = || {
        let settings = context.settings(flags)?;
        level.reload(&settings)?;
        config::resolve(&settings)
    };
    reread().map_err(|failure: Failure| failure.to_text())
}

/// `tabellion config check`.
pub fn check(context: &Context) -> Result<(), Failure> {
    let settings = context.settings(Vec::new())?;
    let config = config::resolve(&settings)?;
    for key in [Some(&config.keys.receipt), Some(&config.keys.checkpoint), config.keys.operator.as_ref()]
        .into_iter()
        .flatten()
    {
        crate::keyfile::read(key)?;
    }
    super::policy::read(&config.policy)?;
    context.console.result(&Checked { origin: config.origin, ready: true })
}

fn not_started(error: StartError) -> Failure {
    let (exit, code) = match &error {
        StartError::Config(_) => (Exit::Usage, "config"),
        StartError::Listen { .. } => (Exit::Failure, "cannot-listen"),
        StartError::Store(_) => (Exit::Failure, "database"),
        StartError::Key(_) | StartError::OtherKey(_) => (Exit::Failure, "key"),
        StartError::Policy(_) => (Exit::Failure, "policy"),
        _ => (Exit::Failure, "not-started"),
    };
    Failure::new(exit, code, "the service did not start")
        .fact("because", error.to_string())
        .hint("tabellion config check")
}

#[derive(Serialize)]
struct Checked {
    origin: String,
    ready: bool,
}

impl Report for Checked {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "`tabellion serve` can start the log {} with this", self.origin)
    }
}

/// Where a service listens: with --json, what a script waits for.
#[derive(Serialize)]
struct Serving {
    url: String,
    listen: String,
    admin: Option<String>,
    origin: String,
}

impl Serving {
    fn of(service: &Service) -> Self {
        let addresses = service.addresses();
        Self {
            url: service.identity().public_url.clone(),
            listen: addresses.public.to_string(),
            admin: addresses.admin.map(|admin| admin.to_string()),
            origin: service.identity().origin.clone(),
        }
    }
}

impl Report for Serving {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "serving {} at {}", self.origin, self.url)
    }
}
