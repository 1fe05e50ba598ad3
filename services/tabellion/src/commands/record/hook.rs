//! `tabellion record hook`: hooks of coding agents that record a session when it ends.
//!
//! The hook never delays or fails the agent: it ends with 0, and the work is done by a process of its own. Problems are
//! written to `hook.log` in the folder of the records, and to standard error.

mod agent;
mod event;
mod install;
mod json_hooks;
mod notify;
mod run;
mod session_file;

use clap::Subcommand;

use crate::console::Failure;
use crate::context::Context;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion record hook install claude-code --key key.pem")]
pub enum Hook {
    /// Add the hook to an agent's configuration, or remove it
    #[command(before_help = "example:  tabellion record hook install claude-code --key key.pem")]
    Install(Box<install::Install>),
    /// Record the session of an event; the agent starts this
    #[command(before_help = "example:  tabellion record hook run claude-code --key key.pem")]
    Run(Box<run::Run>),
}

impl Hook {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Install(install) => install.run(context),
            Self::Run(run) => run.run(context),
        }
    }
}
