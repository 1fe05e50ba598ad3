//! `tabellion monitor run`: monitors logs until it is stopped.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use monitor::admin::Admin;
use monitor::keeper::Event;
use monitor::{Config, Exit as Ending, Monitor, MonitorError};
use serde::Serialize;
use transparency::stop_signal;

use super::show;
use super::watched::{self, Watched};
use crate::cli::Context;
use crate::console::{Console, Exit, Failure, Report, safe};

/// Maximum time for the current round to finish after a stop signal. An aborted round loses nothing.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion monitor run --config /etc/tabellion/monitor.toml")]
pub struct Run {
    #[command(flatten)]
    watched: Watched,
}

impl Run {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let ended = runtime.block_on(self.watch(context));
        // An aborted round must not keep the process alive.
        runtime.shutdown_background();
        ended
    }

    async fn watch(self, context: &Context) -> Result<(), Failure> {
        let config = self.watched.config(context)?;
        watched::start_logging(context, "info")?;
        let stop = stop_signal();
        let monitor = Monitor::begin(&config).map_err(|why| watched::not_begun(&why))?;
        let console = context.console;
        let state_dir = config.state_dir.clone();
        let ear = move |event: &Event| tell(&console, event, &state_dir);
        let keeper = Arc::new(watched::keeper(&config, Box::new(ear))?);
        let admin = match config.listen {
            Some(address) => Some(Admin::bind(address, keeper.metrics()).await.map_err(|why| {
                Failure::new(Exit::Failure, "cannot-listen", format!("cannot listen on {address}: {why}"))
            })?),
            None => None,
        };
        context.console.result(&Watching {
            event: "watching",
            logs: names(&config),
            every_seconds: config.every.as_secs(),
            metrics: admin.as_ref().map(|admin| format!("http://{}/metrics", admin.address())),
            webhook_key: keeper.webhook_key().map(|key| key.to_string()),
            state_dir: config.state_dir.display().to_string(),
        })?;
        let beside = async {
            let metrics = async {
                if let Some(admin) = admin {
                    admin.serve().await
                }
            };
            tokio::join!(metrics, keeper.send_always());
        };
        let (told, heard) = tokio::sync::oneshot::channel::<()>();
        let rounds = monitor.run(keeper.clone(), async {
            let _ = heard.await;
        });
        tokio::select! {
            ended = draining(rounds, stop, told) => ended.map_err(|why| watched::not_begun(&why)),
            () = beside => Ok(()),
        }
    }
}

fn names(config: &Config) -> Vec<String> {
    let services = config.services.iter().map(|service| service.name.clone());
    config.logs.iter().map(|log| log.name.clone()).chain(services).collect()
}

/// Waits for the current round after a stop signal, for at most [`DRAIN`].
async fn draining(
    rounds: impl Future<Output = Result<(), MonitorError>>,
    stop: impl Future<Output = ()>,
    told: tokio::sync::oneshot::Sender<()>,
) -> Result<(), MonitorError> {
    let mut rounds = std::pin::pin!(rounds);
    tokio::select! {
        ended = &mut rounds => return ended,
        () = stop => {}
    }
    let _ = told.send(());
    tokio::time::timeout(DRAIN, rounds).await.unwrap_or_else(|_| {
        tracing::info!("a round was not waited for: the next start makes it again");
        Ok(())
    })
}

/// Prints an event. Errors are ignored, because the event is stored, too.
fn tell(console: &Console, event: &Event, state_dir: &std::path::Path) {
    let alarm = match event {
        Event::Round { .. } if !console.json => return,
        Event::Raised { alarm } => Some(alarm),
        _ => None,
    };
    let _ = console.result(&Told(event));
    if let Some(standing) = alarm.filter(|standing| standing.alarm.kind.exit() == Ending::Misbehaviour) {
        console.failure(&show::security(standing, state_dir));
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Told<'a>(&'a Event);

impl Report for Told<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.0 {
            Event::Round { .. } => Ok(()),
            Event::Raised { alarm } => show::standing(out, alarm),
            Event::Cleared { alarm } => show::cleared(out, alarm),
        }
    }
}

/// The announcement when the monitor runs, for which scripts wait.
#[derive(Serialize)]
struct Watching {
    event: &'static str,
    logs: Vec<String>,
    every_seconds: u64,
    metrics: Option<String>,
    webhook_key: Option<String>,
    state_dir: String,
}

impl Report for Watching {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "watching {} every {} s", safe(&self.logs.join(", ")), self.every_seconds)?;
        writeln!(out, "state      {}", safe(&self.state_dir))?;
        self.metrics.iter().try_for_each(|url| writeln!(out, "metrics    {url}"))?;
        self.webhook_key.iter().try_for_each(|key| writeln!(out, "webhooks   signed by {key}"))
    }
}
