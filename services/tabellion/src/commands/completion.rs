//! `tabellion completion`: prints a completion script for a shell.

use std::path::Path;

use clap::Args;
use clap_complete::Shell;

use crate::console::Failure;
use crate::console::files::{self, Access, Existing};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion completion bash > /etc/bash_completion.d/tabellion")]
pub struct Completion {
    /// Which shell
    shell: Shell,
}

impl Completion {
    /// Prints the script for `program`.
    pub fn run(self, mut program: clap::Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "tabellion", &mut script);
        files::write(Path::new("-"), &script, Access::Ordinary, Existing::Replace)
    }
}
