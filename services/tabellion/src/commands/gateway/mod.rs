//! `tabellion gateway`: an MCP reverse proxy that admits or refuses each tool call.

mod approval;
mod check;
mod config_file;
mod explain;
mod jwks;
mod keys;
mod replay;
mod run;
mod spans;
mod start_server;
mod tools;

use clap::Subcommand;

use crate::cli::Context;
use crate::console::Failure;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion gateway run --dev --upstream http://127.0.0.1:3001/mcp")]
pub enum Gateway {
    /// Serve until told to stop
    Run(run::Run),
    /// Check a configuration, its servers, and that the log takes what it would send
    Check(check::Check),
    /// Say what would become of a call, and why
    Explain(explain::Explain),
    /// Decide a recorded session again, and say where an answer differs
    Replay(replay::Replay),
    /// What servers say of their tools: what is pinned, what changed, and approving it
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Make the keys that are missing, and say what the log's policy must list
    Keys(keys::Keys),
    /// What waits for an approver outside of the clients: list, show, answer, verify
    #[command(subcommand)]
    Approval(approval::Approval),
    /// The public keys that its Verdicts are signed with, active first
    Jwks(jwks::Jwks),
    /// Restrict this process and become a server: for the gateway itself
    #[command(hide = true)]
    StartServer(start_server::StartServer),
}

impl Gateway {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Run(command) => command.run(context),
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

/// Creates the runtime for commands that use a database or the network.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
