//! `tabellion completion`: a script for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::console::Failure;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion completion bash > /etc/bash_completion.d/tabellion")]
pub struct Completion {
    /// Which shell
    shell: Shell,
}

impl Completion {
    pub fn run(self) -> Result<(), Failure> {
        let mut command = crate::cli::Cli::command();
        clap_complete::generate(self.shell, &mut command, "tabellion", &mut std::io::stdout());
        Ok(())
    }
}
