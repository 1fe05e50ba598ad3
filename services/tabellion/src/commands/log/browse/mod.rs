//! `tabellion log browse`: the log's entries on the whole terminal, newest first, each with its verified proof.
//!
//! The program asks the log every [`REFRESH`], which shows new entries, new matches of a search, newer cosignatures and a
//! lost connection. Requests run in tasks, so that keys work meanwhile.
//!
//! Not here: what a key does ([`browser`]), drawing ([`view`]), and verification (`commands/verify`).

mod browser;
mod entry_list;
mod keys;
mod movement;
mod opened_entry;
mod requests;
mod screen;
mod view;

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use serving::signals::{hangups, stop_signal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

use crate::commands::checkpoint::verify::CheckpointTrust;
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::ServiceArgs;
use browser::Browser;
use requests::{BrowsedLog, LogAnswer, LogRequest};
use screen::Screen;

/// Interval of the requests for new entries and for the newest checkpoint.
const REFRESH: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion log browse https://log.example",
    after_help = "Keys: ↑ ↓ PgUp PgDn Home End, Enter opens, / searches, Esc goes back, q quits.",
    mut_arg("url", |url| url.hide(true)),
    mut_arg("timeout", |timeout| timeout.default_value("10").hide(true))
)]
pub struct Browse {
    /// The service [default: setting log_url]
    #[arg(value_name = "URL", conflicts_with = "url")]
    log: Option<String>,
    #[command(flatten)]
    trust: CheckpointTrust,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Browse {
    pub fn run(mut self, context: &Context) -> Result<(), Failure> {
        if !context.console.writes_to_terminal() || !io::stdin().is_terminal() {
            return Err(no_terminal());
        }
        self.service.url = self.log.or(self.service.url);
        let service = self.service.connect(context)?;
        let log = BrowsedLog::new(service.client.clone(), self.trust.read(context)?);
        let newest = service.block_on(log.newest(""))?;
        let browser = Browser::new(service.client.base().as_str(), newest);
        let coloured = context.console.colours_stdout();
        screen::run(|screen| service.drive(browse(screen, browser, log, coloured)))?
    }
}

fn no_terminal() -> Failure {
    let what = "log browse needs a terminal for its input and output";
    Failure::new(Exit::Usage, "no-terminal", what).hint("tabellion entry list --newest --json")
}

/// Draws the browser, and hands it keys and answers, until the person leaves, the terminal is gone or a signal stops the
/// process.
async fn browse(
    screen: &mut Screen,
    mut browser: Browser,
    log: BrowsedLog,
    coloured: bool,
) -> Result<(), Failure> {
    let mut stop = pin!(stop_signal());
    let hangup = hangups()?;
    let mut resized = signal(SignalKind::window_change())?;
    let mut refresh = interval(REFRESH);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pressed = keys::listen();
    let mut running = JoinSet::new();
    while !browser.is_closed() {
        browser.fit(screen.size()?);
        screen.draw(|frame| view::draw(frame, &browser, coloured))?;
        let requests = tokio::select! {
            key = pressed.recv() => match key {
                Some(key) => browser.press(key),
                None => return Ok(()),
            },
            Some(answer) = running.join_next() => {
                browser.take(unwound(answer));
                Vec::new()
            }
            _ = refresh.tick() => browser.refresh(),
            _ = resized.recv() => Vec::new(),
            () = hangup.notified() => return Ok(()),
            () = &mut stop => return Ok(()),
        };
        for request in requests {
            start(&mut running, &log, request);
        }
    }
    Ok(())
}

fn start(running: &mut JoinSet<LogAnswer>, log: &BrowsedLog, request: LogRequest) {
    let log = log.clone();
    running.spawn(async move { log.answer(request).await });
}

/// Returns the answer of a task, or continues its panic, so that the program does not go on without it.
fn unwound(answer: Result<LogAnswer, JoinError>) -> LogAnswer {
    answer.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
