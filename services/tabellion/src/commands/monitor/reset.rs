//! `tabellion monitor reset`: resets alarms after they have been examined.
//!
//! It works while a monitor runs. If the cause persists, the next round raises a new alarm.

use std::io::{self, Write};

use clap::Args;
use monitor::Alarms;
use monitor::keeper::{self, Standing};
use serde::Serialize;

use super::show;
use super::watched::Kept;
use crate::cli::Context;
use crate::commands::verify::now;
use crate::console::{Exit, Failure, Report, safe};

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion monitor reset 1f0c22aa9b1d --because \"restored by hand, all receipts checked\""
)]
pub struct Reset {
    /// The alarms' ids, as `tabellion monitor alerts` shows them
    #[arg(required_unless_present = "all")]
    id: Vec<String>,
    /// All that stand
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Only those of this log
    #[arg(long, value_name = "NAME")]
    log: Option<String>,
    /// What was found: kept with the alarms
    #[arg(long, value_name = "TEXT")]
    because: String,
    #[command(flatten)]
    kept: Kept,
}

impl Reset {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let folder = self.kept.folder(context)?;
        let asked = self.id.clone();
        let reset = keeper::Reset { ids: self.id, log: self.log, because: self.because, at: now() };
        let taken = Alarms::reset(&folder, &reset).map_err(|why| show::unreadable(&why))?;
        let missing: Vec<_> = asked.iter().filter(|id| taken.iter().all(|taken| taken.id != **id)).collect();
        context.console.result(&Taken { alarms: taken.clone() })?;
        match missing.first() {
            None => Ok(()),
            Some(id) => Err(Failure::new(Exit::NotFound, "no-such-alarm", format!("no alarm {id} stands"))
                .hint("tabellion monitor alerts")),
        }
    }
}

#[derive(Serialize)]
struct Taken {
    alarms: Vec<Standing>,
}

impl Report for Taken {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for standing in &self.alarms {
            let evidence = standing.evidence_file.as_deref().unwrap_or("none");
            let kind = standing.alarm.kind.name();
            writeln!(out, "reset  {}  {kind}  (evidence: {})", standing.id, safe(evidence))?;
        }
        Ok(())
    }
}
