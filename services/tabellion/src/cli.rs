//! The command tree. Each command's arguments stand beside its code in [`commands`](crate::commands).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    completion, config, entry, help, init, issuer, key, log, policy, receipt, register, serve, statement,
    trust, verify, vrf,
};
use crate::console::{Color, Console, Failure};
use crate::settings::Settings;

/// A transparency log for what AI agents did.
#[derive(Debug, Parser)]
#[command(name = "tabellion", version, disable_help_subcommand = true, max_term_width = 100)]
#[command(
    before_help = "first steps:  tabellion serve --dev     then, elsewhere:  tabellion register --dev hello.json"
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command understands.
#[derive(Clone, Debug, Args)]
#[command(next_display_order = 900)]
pub struct Global {
    /// Print results and errors as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = true
    )]
    pub color: Color,
    /// Draw no progress bar
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Read this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What a command gets to work with.
pub struct Context {
    pub console: Console,
    config: Option<PathBuf>,
}

impl Context {
    /// Settings from every source, with what was typed for this command on top.
    pub fn settings(&self, flags: Vec<(&'static str, String)>) -> Result<Settings, Failure> {
        Settings::gather(self.config.as_deref(), flags)
    }
}

impl From<&Global> for Context {
    fn from(global: &Global) -> Self {
        let console = Console { json: global.json, color: global.color, progress: !global.no_progress };
        Self { console, config: global.config.clone() }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the transparency service
    Serve(serve::Serve),
    /// Write a configuration and keys for a new log
    Init(init::Init),
    /// Show or check the effective configuration
    #[command(subcommand)]
    Config(config::Config),
    /// The log's own keys
    #[command(subcommand)]
    Key(key::Key),
    /// An issuer's signing key
    #[command(subcommand)]
    Issuer(issuer::Issuer),
    /// Trust anchors: which keys speak for which log or issuer
    #[command(subcommand)]
    Trust(trust::Trust),
    /// The registration policy
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Make and read Signed Statements
    #[command(subcommand)]
    Statement(statement::Statement),
    /// Register files, wait for their receipts and verify them
    Register(register::Register),
    /// Fetch, read, check, attach and detach Receipts
    #[command(subcommand)]
    Receipt(receipt::Receipt),
    /// Verify a transparent statement, or a statement and its receipt, offline
    Verify(verify::Verify),
    /// Read the log's entries
    #[command(subcommand)]
    Entry(entry::Entry),
    /// Verification receipts (VRF)
    #[command(subcommand)]
    Vrf(vrf::Vrf),
    /// Check and repair the log's storage
    #[command(subcommand)]
    Log(log::Log),
    /// Print a completion script for a shell
    Completion(completion::Completion),
    /// Print the version
    Version,
    /// Explain a topic: exit-codes, errors, config, formats, trust
    Help(help::Help),
}

impl Command {
    /// Runs the command.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Serve(command) => command.run(context),
            Self::Init(command) => command.run(context),
            Self::Config(command) => command.run(context),
            Self::Key(command) => command.run(context),
            Self::Issuer(command) => command.run(context),
            Self::Trust(command) => command.run(context),
            Self::Policy(command) => command.run(context),
            Self::Statement(command) => command.run(context),
            Self::Register(command) => command.run(context),
            Self::Receipt(command) => command.run(context),
            Self::Verify(command) => command.run(context),
            Self::Entry(command) => command.run(context),
            Self::Vrf(command) => command.run(context),
            Self::Log(command) => command.run(context),
            Self::Completion(command) => command.run(),
            Self::Version => help::version(context),
            Self::Help(command) => command.run(context),
        }
    }
}
