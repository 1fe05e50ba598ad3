//! `tabellion monitor status`: prints the result of the last rounds from the state directory.

use std::io::{self, Write};

use clap::Args;
use monitor::alarm_list::AlarmRecord;
use monitor::{AlarmList, Round, last_rounds};
use serde::Serialize;

use super::show;
use super::watched::StateDirArgs;
use crate::commands::verify::now;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::show::time;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion monitor status --config monitor.toml")]
pub struct Status {
    #[command(flatten)]
    kept: StateDirArgs,
}

impl Status {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let folder = self.kept.folder(context)?;
        let rounds = last_rounds(&folder).map_err(|why| {
            Failure::new(Exit::Failure, "monitor-state", format!("{}: {why}", folder.display()))
        })?;
        if rounds.is_empty() {
            return Err(Failure::new(Exit::NotVerified, "nothing-watched", "no log has been checked yet")
                .fact("state", folder.display().to_string()));
        }
        let alarms = AlarmList::read(&folder).map_err(|why| show::unreadable(&why))?;
        let now = now();
        let logs: Vec<_> =
            rounds.into_iter().map(|round| LogStatus::of(round, alarms.standing(), now)).collect();
        let state_dir = folder.display().to_string();
        context
            .console
            .print(&members! { state_dir, logs }, |out| logs.iter().try_for_each(|log| log.lines(out)))
    }
}

#[derive(Serialize)]
struct LogStatus {
    log: String,
    origin: String,
    verified_size: Option<u64>,
    last_round_at: u64,
    last_round_seconds_ago: u64,
    cosigned_at: Option<u64>,
    alarms: Vec<AlarmRecord>,
    round: Round,
}

impl LogStatus {
    fn of(round: Round, standing: &[AlarmRecord], now: u64) -> Self {
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

    fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let size = self.verified_size.map_or("nothing".to_owned(), |size| format!("size {size}"));
        let cosigned = self.cosigned_at.map_or("not known".to_owned(), time);
        let (looked, ago) = (time(self.last_round_at), self.last_round_seconds_ago);
        writeln!(out, "{}  {}", safe(&self.log), safe(&self.origin))?;
        writeln!(out, "  verified    {size}")?;
        writeln!(out, "  last look   {looked}, {ago} s ago")?;
        writeln!(out, "  cosigned    {cosigned}")?;
        writeln!(out, "  came to     {}", show::in_words(self.round.exit()))?;
        self.alarms.iter().try_for_each(|standing| show::standing(out, standing))
    }
}
