//! `tabellion monitor alerts`: lists active alarms, and with `--all` past ones.

use clap::Args;

use super::show;
use super::watched::StateDirArgs;
use crate::console::{Failure, members};
use crate::context::Context;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion monitor alerts --config monitor.toml")]
pub struct Alerts {
    /// Include cleared alarms
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    kept: StateDirArgs,
}

impl Alerts {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let folder = self.kept.folder(context)?;
        let alarms = monitor::AlarmList::read(&folder).map_err(|why| show::unreadable(&why))?;
        let over = if self.all { alarms.over().to_vec() } else { Vec::new() };
        let listed: Vec<_> = over.iter().chain(alarms.standing()).collect();
        let json = members! { state_dir: folder.display().to_string(), alarms: &listed };
        context.console.print(&json, |out| {
            if listed.is_empty() {
                return writeln!(out, "no active alarms");
            }
            listed.iter().try_for_each(|standing| show::standing(out, standing))
        })?;
        match alarms.exit() {
            monitor::MonitorExit::Success => Ok(()),
            ending => Err(Failure::already_printed(show::exit(ending))),
        }
    }
}
