//! `tabellion monitor once`: checks every log once, for interactive use or a timer.

use std::io::{self, Write};

use clap::Args;
use monitor::alarm_list::AlarmRecord;
use monitor::{AlarmList, Monitor, MonitorExit, Round};
use serde::Serialize;

use super::show;
use super::watched::{self, WatchedArgs};
use crate::commands::logging::LogLevel;
use crate::console::{Exit, Failure, Report};
use crate::context::Context;
use crate::runtime;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion monitor once --config monitor.toml")]
pub struct Once {
    #[command(flatten)]
    watched: WatchedArgs,
}

impl Once {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = runtime::multi_threaded()?;
        runtime.block_on(self.check_logs(context))
    }

    async fn check_logs(self, context: &Context) -> Result<(), Failure> {
        let config = self.watched.config(context)?;
        let _level = LogLevel::of_environment("error", &context.console)?;
        let mut monitor = Monitor::begin(&config).map_err(|why| watched::not_begun(&why))?;
        let recorder = watched::recorder(&config, Box::new(|_| {}))?;
        let rounds = monitor.once(&recorder).await;
        recorder.send().await;
        let standing = AlarmList::read(&config.state_dir);
        // Findings are printed and determine the exit code, even if they could not be stored.
        let alarms = standing.as_ref().map_or(&[][..], AlarmList::standing);
        let results = RoundResults::of(rounds, alarms, &config.state_dir);
        context.console.result(&results)?;
        for standing in
            results.alarms.iter().filter(|standing| standing.alarm.kind.exit() == MonitorExit::Misbehaviour)
        {
            context.console.failure(&show::security(standing, &config.state_dir));
        }
        let not_stored = match (recorder.has_failed(), standing) {
            (_, Err(why)) => Some(show::unreadable(&why)),
            (true, _) => {
                Some(Failure::new(Exit::Failure, "monitor-not-kept", "the findings could not be stored"))
            }
            (false, Ok(_)) => None,
        };
        match (results.ending, not_stored) {
            (MonitorExit::Success, None) => Ok(()),
            (MonitorExit::Success | MonitorExit::Error, Some(failure)) => Err(failure),
            (ending, failure) => {
                failure.iter().for_each(|failure| context.console.failure(failure));
                Err(Failure::already_printed(show::exit(ending)))
            }
        }
    }
}

/// The result of one round of checks on all logs.
#[derive(Serialize)]
struct RoundResults {
    rounds: Vec<Round>,
    alarms: Vec<AlarmRecord>,
    ending: MonitorExit,
    state_dir: String,
}

impl RoundResults {
    /// Combines rounds with the active alarms. Alarms of earlier rounds count until they are reset.
    fn of(rounds: Vec<Round>, standing: &[AlarmRecord], state_dir: &std::path::Path) -> Self {
        let alarms: Vec<AlarmRecord> = standing
            .iter()
            .filter(|standing| rounds.iter().any(|round| round.log == standing.alarm.log))
            .cloned()
            .collect();
        let stands = alarms.iter().map(|standing| standing.alarm.kind.exit());
        let ending = rounds.iter().map(Round::exit).chain(stands).max().unwrap_or(MonitorExit::Success);
        let rounds = rounds.into_iter().map(show::without_evidence).collect();
        Self { rounds, alarms, ending, state_dir: state_dir.display().to_string() }
    }
}

impl Report for RoundResults {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for round in &self.rounds {
            show::round(out, round)?;
        }
        self.alarms.iter().try_for_each(|standing| show::standing(out, standing))?;
        writeln!(out, "{}", show::in_words(self.ending))
    }
}
