//! `tabellion witness`: runs a small witness, and manages the witnesses of a log.

mod add;
mod list;
mod policy_file;
mod serve;
mod status;
mod submit;

use clap::Subcommand;

use crate::console::Failure;
use crate::context::Context;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion witness serve --state w1 --name w1.example --logs logs.txt")]
pub enum Witness {
    /// Start a witness, which cosigns consistent checkpoints of logs
    Serve(serve::Serve),
    /// Submit a log's newest checkpoint to a witness, and print the cosignature
    Submit(Box<submit::Submit>),
    /// List the witnesses and the quorum of a policy file
    List(list::List),
    /// Add a witness to the policy file
    Add(add::Add),
    /// Show which tree size each witness of a log has cosigned
    Status(status::Status),
}

impl Witness {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Serve(command) => command.run(context),
            Self::Submit(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Add(command) => command.run(context),
            Self::Status(command) => command.run(context),
        }
    }
}
