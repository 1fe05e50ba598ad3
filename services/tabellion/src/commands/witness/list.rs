//! `tabellion witness list`: prints the witnesses in a policy file and their quorum, without contacting them.

use clap::Args;

use super::policy_file::{self, PolicyFile, PolicyListing};
use crate::console::Failure;
use crate::context::Context;

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
        PolicyListing::of(&path, &policy).print(&context.console)
    }
}
