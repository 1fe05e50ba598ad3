//! `tabellion serve`: runs the transparency service.

pub mod check;
pub mod config;
pub mod dev;
pub mod failures;

use std::pin::{Pin, pin};

use clap::Args;
use serving::signals::stop_signal;
use transparency::{Config, Halt, Service};

use crate::commands::logging::{self, LogLevel};
use crate::commands::spans::{SpanSource, Spans};
use crate::console::{Exit, Failure, members};
use crate::context::Context;
use crate::exposed_settings;
use crate::runtime;
use crate::settings::{self, SettingFlags, Settings};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion serve --dev")]
pub struct Serve {
    /// A local log for trials, in ./tabellion-dev: loopback only
    #[arg(long)]
    dev: bool,
    #[command(flatten)]
    flags: SettingFlags,
}

impl Serve {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = runtime::multi_threaded()?;
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
    let config = check::runnable(&settings)?;
    let spans = Spans::start(SpanSource::Log, config::collector(&settings)?.as_ref())?;
    let level = LogLevel::start(&settings, spans.listener(), &context.console)?;
    exposed_settings::log::refuse(&config, &settings)?;
    let shared = check::shared_keys(&config);
    if !shared.is_empty() {
        return Err(settings::refuse(shared));
    }
    warn(context, &settings, &config);
    let mut stop = pin!(stop_signal());
    let Some(service) = start(config, false, stop.as_mut()).await? else { return Ok(()) };
    tell_if_halted(context, &settings, &service);
    announce(context, &service)?;
    let reread = || reread(context, flags.typed(), &level);
    let end = service.run_until(reread, stop).await;
    spans.finish().await;
    end.map_err(ended)
}

async fn dev_mode(context: &Context, flags: &SettingFlags) -> Result<(), Failure> {
    let dev = dev::prepare(context)?;
    let flags = flags.or(dev.settings());
    let settings = context.settings(flags.clone())?;
    let config = config::resolve(&settings)?;
    if config.tls.is_some() {
        let what = "dev mode serves plain HTTP on loopback: leave tls_cert and tls_key away";
        return Err(Failure::new(Exit::Usage, "usage", what));
    }
    let spans = Spans::start(SpanSource::Log, config::collector(&settings)?.as_ref())?;
    let level = LogLevel::start(&settings, spans.listener(), &context.console)?;
    exposed_settings::log::refuse(&config, &settings)?;
    warn(context, &settings, &config);
    let mut stop = pin!(stop_signal());
    dev.write_config(&config)?;
    let Some(service) = start(config.clone(), true, stop.as_mut()).await? else { return Ok(()) };
    match tell_if_halted(context, &settings, &service) {
        true => announce(context, &service)?,
        false => dev.introduce(context, &service, &config).await?,
    }
    let end = service.run_until(|| reread(context, flags.clone(), &level), stop).await;
    spans.finish().await;
    end.map_err(ended)
}

/// Prints warnings about settings that expose secrets, or name files that do not exist.
fn warn(context: &Context, settings: &Settings, config: &Config) {
    for warning in exposed_settings::log::warnings(config, settings) {
        if logging::for_machines(settings) {
            tracing::warn!(setting = warning.key, "{}", warning.what);
        } else {
            context.console.note(format!("warning: {}: {}", warning.key, warning.what));
        }
    }
}

/// Converts the sequencer's final failure ([`Halt`]), after which the process is unreliable.
fn ended(halt: Halt) -> Failure {
    failures::halted(&halt)
}

/// Reports a halted log, which still serves reads. With JSON logs the service's own log line suffices. Returns whether
/// the log is halted.
fn tell_if_halted(context: &Context, settings: &Settings, service: &Service) -> bool {
    let Some(halt) = service.sequencer().status().borrow().obstacle().cloned() else { return false };
    if logging::for_machines(settings) {
        return true;
    }
    if halt == Halt::Frozen {
        // A freeze is intended, so it is not an error.
        context.console.note("this log is frozen: no more entries are added; reads and proofs continue");
    } else {
        context.console.failure(&failures::halted(&halt));
    }
    true
}

/// Starts the service; `None` if the stop signal arrived first. `stop` is reused by the caller, because a signal
/// between two listeners would be lost.
async fn start(
    config: Config,
    dev: bool,
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<Option<Service>, Failure> {
    tokio::select! {
        started = Service::start(config.clone()) => {
            started.map(Some).map_err(|error| failures::not_started(error, &config, dev))
        }
        () = stop => Ok(None),
    }
}

fn reread(context: &Context, flags: Vec<(&'static str, String)>, level: &LogLevel) -> Result<Config, String> {
    let reread = || {
        let settings = context.settings(flags)?;
        level.reload(&settings)?;
        config::resolve(&settings)
    };
    reread().map_err(|failure: Failure| failure.in_short())
}

/// Prints the addresses of the running service. Scripts wait for this output with `--json`.
fn announce(context: &Context, service: &Service) -> Result<(), Failure> {
    let (addresses, identity) = (service.addresses(), service.identity());
    let (url, origin) = (&identity.public_url, &identity.origin);
    let json = members! {
        url,
        listen: addresses.public.to_string(),
        admin: addresses.admin.map(|admin| admin.to_string()),
        admin_socket: &addresses.admin_socket,
        origin,
    };
    context.console.print(&json, |out| writeln!(out, "serving {origin} at {url}"))
}
