//! `tabellion witness`: a small witness, and what a log's operator does with witnesses.

mod serve;
mod submit;

use clap::Subcommand;

use crate::cli::Context;
use crate::console::Failure;

#[derive(Debug, Subcommand)]
#[command(
    before_help = "example:  tabellion witness serve --state w1 --name witness.example/w1 --logs logs.txt"
)]
pub enum Witness {
    /// Start a witness: it cosigns the checkpoints of logs that it has seen grow
    Serve(serve::Serve),
    /// Hand a log's newest checkpoint to a witness, and print the cosignature
    Submit(submit::Submit),
}

impl Witness {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Serve(command) => command.run(context),
            Self::Submit(command) => command.run(context),
        }
    }
}
