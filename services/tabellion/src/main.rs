//! The program `tabellion`: parses arguments, starts a service or calls a crate, and prints the result. Protocols are
//! implemented in the crates.

mod cli;
mod commands;
mod console;
mod context;
mod dev_files;
mod entry_evidence;
mod exposed_settings;
mod keyfile;
mod runtime;
mod service;
mod settings;
mod show;
mod standard_streams;
mod state_folder;
mod trust_file;
mod verification;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::usage(&error).into(),
    };
    let context = context::Context::from(&cli.global);
    match cli.command.run(&context) {
        Ok(()) => console::Exit::Success.into(),
        Err(failure) => {
            if !failure.printed {
                context.console.failure(&failure);
            }
            failure.exit.into()
        }
    }
}
