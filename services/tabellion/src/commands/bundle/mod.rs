//! `tabellion bundle`: evidence bundles, files that hold entries of a log with everything needed to verify them offline.
//!
//! Not here: the format and its verification (the crate `bundle`), and the command that verifies one, `tabellion
//! verify`.

pub mod claims;
mod create;
pub mod gather;
mod show;

use clap::Subcommand;

use crate::console::Failure;
use crate::context::Context;
use create::Create;
use show::Show;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion bundle create --session session-1 -o session-1.bundle")]
pub enum Bundle {
    /// Gather entries of the log with their proofs in one file
    Create(Box<Create>),
    /// Show the contents of a bundle without verifying them
    #[command(before_help = "example:  tabellion bundle show session-1.bundle")]
    Show(Show),
}

impl Bundle {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Create(command) => command.run(context),
            Self::Show(command) => command.run(context),
        }
    }
}
