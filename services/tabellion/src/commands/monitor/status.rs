//! `tabellion monitor status`: prints the result of the last rounds from the state directory.

use std::io::{self, Write};

use clap::Args;
use monitor::keeper::Standing;
use monitor::{Alarms, Round, last_rounds};
use serde::Serialize;

use super::show;
use super::watched::Kept;
use crate::cli::Context;
use crate::commands::verify::now;
use crate::console::{Exit, Failure, Report, safe};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion monitor status --config monitor.toml")]
pub struct Status {
    #[command(flatten)]
    kept: Kept,
}

impl Status {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let folder = self.kept.folder(context)?;
        let rounds = last_rounds(&folder).map_err(|why| {
            Failure::new(Exit::Failure, "monitor-state", format!("{}: {why}", folder.display()))
        })?;
        if rounds.is_empty() {
            return Err(Failure::new(Exit::NotVerified, "nothing-watched", "no log was looked at yet")
                .fact("state", folder.display().to_string()));
        }
        let alarms = Alarms::read(&folder).map_err(|why| show::unreadable(&why))?;
        let now = now();
        let logs = rounds.into_iter().map(|round| Watched::of(round, alarms.standing(), now)).collect();
        context.console.result(&Whole { state_dir: folder.display().to_string(), logs })
    }
}

#[derive(Serialize)]
struct Whole {
    state_dir: String,
    logs: Vec<Watched>,
}

#[derive(Serialize)]
struct Watched {
    log: String,
    origin: String,
    verified_size: Option<u64>,
    last_round_at: u64,
    last_round_seconds_ago: u64,
    cosigned_at: Option<u64>,
    alarms: Vec<Standing>,
    round: Round,
}

impl Watched {
    fn of(round: Round, standing: &[Standing], now: u64) -> Self {
        let alarms = standing.iter().filter(|standing| standing.alarm.log == round.log).cloned().collect();
        Self {
            log: round.log.clone(),
            origin: round.origin.clone(),
            verified_size: round.verified,
            last_round_at: round.at,
            last_round_seconds_ago: now.saturating_sub(round.at),
            cosigned_at: round.shown.as_ref().and_then(|shown| shown.cosigned_at),
            alarms,
            round,
        }
    }
}

impl Report for Whole {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for log in &self.logs {
            let size = log.verified_size.map_or("nothing".to_owned(), |size| format!("size {size}"));
            let cosigned = log.cosigned_at.map_or("not known".to_owned(), show::moment);
            writeln!(out, "{}  {}", safe(&log.log), safe(&log.origin))?;
            writeln!(out, "  verified    {size}")?;
            writeln!(
                out,
                "  last look   {}, {} s ago",
                show::moment(log.last_round_at),
                log.last_round_seconds_ago
            )?;
            writeln!(out, "  cosigned    {cosigned}")?;
            writeln!(out, "  came to     {}", show::in_words(log.round.exit()))?;
            log.alarms.iter().try_for_each(|standing| show::standing(out, standing))?;
        }
        Ok(())
    }
}
