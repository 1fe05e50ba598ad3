//! `tabellion witness`: runs a small witness, and manages the witnesses of a log.

mod add;
mod list;
mod policy_file;
mod serve;
mod status;
mod submit;

use clap::Subcommand;

use crate::cli::Context;
use crate::console::Failure;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion witness serve --state w1 --name w1.example --logs logs.txt")]
pub enum Witness {
    /// Start a witness: it cosigns the checkpoints of logs that it has seen grow
    Serve(serve::Serve),
    /// Hand a log's newest checkpoint to a witness, and print the cosignature
    Submit(Box<submit::Submit>),
    /// The witnesses in a log's policy file, and their quorum
    List(list::List),
    /// Write a witness into the policy file
    Add(add::Add),
    /// How far each witness of a log has come
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
