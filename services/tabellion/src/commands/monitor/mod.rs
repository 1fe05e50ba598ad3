//! `tabellion monitor`: monitors logs from outside.

mod alerts;
mod once;
mod reset;
mod run;
mod show;
mod status;
mod watched;

use clap::Subcommand;

use crate::console::Failure;
use crate::context::Context;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion monitor once --config monitor.toml")]
pub enum Monitor {
    /// Monitor logs continuously, and print alarms (with --json: all events)
    Run(run::Run),
    /// Check every log once, and print all checks
    Once(once::Once),
    /// Show the last result for each log, also while the monitor runs
    Status(status::Status),
    /// List active alarms, also while the monitor runs
    Alerts(alerts::Alerts),
    /// Reset alarms after an investigation; their evidence is kept
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
