//! `tabellion monitor`: monitors logs from outside.

mod alerts;
mod once;
mod reset;
mod run;
mod show;
mod status;
mod watched;

use clap::Subcommand;

use crate::cli::Context;
use crate::console::Failure;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion monitor once --config monitor.toml")]
pub enum Monitor {
    /// Watch logs until told to stop: alarms as they come, with --json a line an event
    Run(run::Run),
    /// Look once at every log: a line for every check done and not done
    Once(once::Once),
    /// What the last look at every log came to; a running monitor is not disturbed
    Status(status::Status),
    /// Alarms that stand; a running monitor is not disturbed
    Alerts(alerts::Alerts),
    /// Take alarms back once somebody has looked at them; their evidence stays
    Reset(reset::Reset),
}

impl Monitor {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Run(command) => command.run(context),
            Self::Once(command) => command.run(context),
            Self::Status(command) => command.run(context),
            Self::Alerts(command) => command.run(context),
            Self::Reset(command) => command.run(context),
        }
    }
}
