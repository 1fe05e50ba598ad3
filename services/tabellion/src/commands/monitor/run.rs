//! `tabellion monitor run`: monitors logs until it is stopped.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use monitor::admin;
use monitor::recorder::MonitorEvent;
use monitor::{Config, Monitor, MonitorError, MonitorExit};
use serving::listener::{Listener, ListenerSettings, RunningListener};
use serving::signals::stop_signal;

use super::show;
use super::watched::{self, WatchedArgs};
use crate::commands::logging::LogLevel;
use crate::commands::spans::{SpanSource, Spans};
use crate::console::{Console, Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;

/// Maximum time for the current round to finish after a stop signal. An aborted round loses nothing.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion monitor run --config /etc/tabellion/monitor.toml")]
pub struct Run {
    #[command(flatten)]
    watched: WatchedArgs,
}

impl Run {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = runtime::multi_threaded()?;
        let ended = runtime.block_on(self.watch(context));
        // An aborted round must not keep the process alive.
        runtime.shutdown_background();
        ended
    }

    async fn watch(self, context: &Context) -> Result<(), Failure> {
        let config = self.watched.config(context)?;
        let spans = Spans::start(SpanSource::Monitor, config.otlp.as_ref())?;
        let _level = LogLevel::at_usual_level(spans.listener(), "info", &context.console)?;
        let stop = stop_signal();
        let monitor = Monitor::begin(&config).map_err(|why| watched::not_begun(&why))?;
        let console = context.console;
        let state_dir = config.state_dir.clone();
        let print_event = move |event: &MonitorEvent| print_alarm_event(&console, event, &state_dir);
        let recorder = Arc::new(watched::recorder(&config, Box::new(print_event))?);
        let admin = match config.listen {
            Some(address) => {
                let bound = Listener::bind(address, ListenerSettings::default()).await;
                let listener =
                    bound.map_err(|why| Failure::new(Exit::Failure, "cannot-listen", why.to_string()))?;
                Some(listener.serve(admin::routes(recorder.metrics())))
            }
            None => None,
        };
        let address = admin.as_ref().and_then(RunningListener::address);
        let (logs, every_seconds) = (names(&config), config.every.as_secs());
        let metrics = address.map(|address| format!("http://{address}/metrics"));
        let webhook_key = recorder.webhook_key().map(|key| key.to_string());
        let folder = config.state_dir.display().to_string();
        let json =
            members! { event: "watching", logs, every_seconds, metrics, webhook_key, state_dir: &folder };
        context.console.print(&json, |out| {
            writeln!(out, "watching {} every {every_seconds} s", safe(&logs.join(", ")))?;
            writeln!(out, "state      {}", safe(&folder))?;
            metrics.iter().try_for_each(|url| writeln!(out, "metrics    {url}"))?;
            webhook_key.iter().try_for_each(|key| writeln!(out, "webhooks   signed by {key}"))
        })?;
        let (stop_rounds, rounds_stopped) = tokio::sync::oneshot::channel::<()>();
        let rounds = monitor.run(recorder.clone(), async {
            let _ = rounds_stopped.await;
        });
        let ended = tokio::select! {
            ended = draining(rounds, stop, stop_rounds) => ended.map_err(|why| watched::not_begun(&why)),
            () = recorder.send_always() => Ok(()),
        };
        if let Some(admin) = admin {
            admin.cut().await;
        }
        spans.finish().await;
        ended
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
    stop_rounds: tokio::sync::oneshot::Sender<()>,
) -> Result<(), MonitorError> {
    let mut rounds = std::pin::pin!(rounds);
    tokio::select! {
        ended = &mut rounds => return ended,
        () = stop => {}
    }
    let _ = stop_rounds.send(());
    tokio::time::timeout(DRAIN, rounds).await.unwrap_or_else(|_| {
        tracing::info!("a round was not waited for: the next start makes it again");
        Ok(())
    })
}

/// Prints an event. Errors are ignored, because the event is stored, too.
fn print_alarm_event(console: &Console, event: &MonitorEvent, state_dir: &std::path::Path) {
    let alarm = match event {
        MonitorEvent::Round { .. } if !console.json => return,
        MonitorEvent::Raised { alarm } => Some(alarm),
        _ => None,
    };
    let _ = console.print(event, |out| match event {
        MonitorEvent::Round { .. } => Ok(()),
        MonitorEvent::Raised { alarm } => show::standing(out, alarm),
        MonitorEvent::Cleared { alarm } => show::cleared(out, alarm),
    });
    if let Some(standing) = alarm.filter(|standing| standing.alarm.kind.exit() == MonitorExit::Misbehaviour) {
        console.failure(&show::security(standing, state_dir));
    }
}
