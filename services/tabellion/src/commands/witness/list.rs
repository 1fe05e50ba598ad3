//! `tabellion witness list`: prints the witnesses in a policy file and their quorum, without contacting them.

use clap::Args;

use super::policy_file::{self, Listed, PolicyFile};
use crate::cli::Context;
use crate::console::Failure;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion witness list --policy witnesses.txt")]
pub struct List {
    #[command(flatten)]
    file: PolicyFile,
}

impl List {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let path = self.file.path(context)?;
        let policy = policy_file::read(&path)?;
        context.console.result(&Listed::of(&path, &policy))
    }
}
