//! `tabellion bundle`: evidence bundles, files that hold entries of a log with everything needed to verify them offline.
//!
//! Not here: the format and its verification (the crate `bundle`), and the command that verifies one, `tabellion
//! verify`.

pub mod claims;
pub mod gather;
mod pack;
mod show;

use clap::{Args, Subcommand};

use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::ServiceArgs;
use pack::Pack;
use show::Show;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion bundle session-1 -o session-1.bundle",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    mut_arg("timeout", |timeout| timeout.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true))
)]
pub struct Bundle {
    #[command(subcommand)]
    existing: Option<ExistingBundle>,
    #[command(flatten)]
    pack: Option<Pack>,
    #[command(flatten)]
    service: ServiceArgs,
}

/// A command about a bundle that exists.
#[derive(Debug, Subcommand)]
enum ExistingBundle {
    /// Show the contents of a bundle without verifying them
    #[command(before_help = "example:  tabellion bundle show session-1.bundle")]
    Show(Show),
}

impl Bundle {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match (self.existing, self.pack) {
            (Some(ExistingBundle::Show(command)), _) => command.run(context),
            (None, Some(pack)) => pack.run(context, &self.service),
            (None, None) => Err(Failure::new(Exit::Usage, "usage", "nothing to bundle was named")),
        }
    }
}
