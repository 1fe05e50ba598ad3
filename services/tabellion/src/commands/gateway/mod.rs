//! `tabellion gateway`: an MCP reverse proxy that admits or refuses each tool call.

mod approval;
mod check;
pub mod config_file;
mod dev_mode;
mod explain;
mod jwks;
mod keys;
pub mod replay;
mod run;
mod start_server;
mod stdio;
mod toml_text;
mod tools;
mod wrap;

use clap::Subcommand;

use crate::console::Failure;
use crate::context::Context;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion gateway run --dev --upstream http://127.0.0.1:3001/mcp")]
pub enum Gateway {
    /// Start the gateway
    Run(run::Run),
    /// Serve the MCP client that starts this process, on stdin and stdout
    Stdio(stdio::Stdio),
    /// Put the stdio servers of an MCP client's configuration behind the gateway, or undo that
    Wrap(wrap::Wrap),
    /// Check a configuration, its servers, and that the log admits the gateway's records
    Check(check::Check),
    /// Explain how a call would be decided; no delegation chain is decided about
    Explain(explain::Explain),
    /// Decide a recorded session again, and say where an answer differs
    Replay(replay::Replay),
    /// List pinned tool descriptions and their changes, and approve them
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Make the keys that are missing, and say what the log's policy must list
    Keys(keys::Keys),
    /// List, show, answer and verify questions for approvers
    #[command(subcommand)]
    Approval(approval::Approval),
    /// Print the public keys of the gateway's Verdicts, the active one first
    Jwks(jwks::Jwks),
    /// Restrict this process and become a server: for the gateway itself
    #[command(hide = true)]
    StartServer(start_server::StartServer),
}

impl Gateway {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Run(command) => command.run(context),
            Self::Stdio(command) => command.run(context),
            Self::Wrap(command) => command.run(context),
            Self::Check(command) => command.run(context),
            Self::Explain(command) => command.run(context),
            Self::Replay(command) => command.run(context),
            Self::Tools(command) => command.run(context),
            Self::Keys(command) => command.run(context),
            Self::Approval(command) => command.run(context),
            Self::Jwks(command) => command.run(context),
            Self::StartServer(command) => command.run(),
        }
    }
}
