//! `tabellion monitor reset`: resets alarms after they have been examined.
//!
//! It works while a monitor runs. If the cause persists, the next round raises a new alarm.

use clap::Args;
use monitor::AlarmList;
use monitor::alarm_list::AlarmReset;

use super::show;
use super::watched::StateDirArgs;
use crate::commands::verify::now;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion monitor reset 1f0c22aa9b1d --because \"restored by hand, all receipts checked\""
)]
pub struct Reset {
    /// The alarms' IDs from `tabellion monitor alerts`
    #[arg(required_unless_present = "all")]
    id: Vec<String>,
    /// Reset all active alarms
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Reset the alarms of this log only
    #[arg(long, value_name = "NAME")]
    log: Option<String>,
    /// The result of the investigation, stored with the alarms
    #[arg(long, value_name = "TEXT")]
    because: String,
    #[command(flatten)]
    kept: StateDirArgs,
}

impl Reset {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let folder = self.kept.folder(context)?;
        let asked = self.id.clone();
        let reset = AlarmReset { ids: self.id, log: self.log, because: self.because, at: now() };
        let taken = AlarmList::reset(&folder, &reset).map_err(|why| show::unreadable(&why))?;
        let missing: Vec<_> = asked.iter().filter(|id| taken.iter().all(|taken| taken.id != **id)).collect();
        context.console.print(&members! { alarms: &taken }, |out| {
            taken.iter().try_for_each(|standing| {
                let evidence = standing.evidence_file.as_deref().unwrap_or("none");
                let kind = standing.alarm.kind.name();
                writeln!(out, "reset  {}  {kind}  (evidence: {})", standing.id, safe(evidence))
            })
        })?;
        match missing.first() {
            None => Ok(()),
            Some(id) => {
                Err(Failure::new(Exit::NotFound, "no-such-alarm", format!("there is no active alarm {id}"))
                    .hint("tabellion monitor alerts"))
            }
        }
    }
}
