//! `tabellion mcp`: an MCP server on standard input and output, whose tools are commands of this program: `register`,
//! `verify`, `search` and `session`.
//!
//! A tool parses its arguments with the parser of its command and calls the function that the command calls. Its
//! structured content is what the command prints with `--json`, and it is an error if the command would not end with 0.
//!
//! Not here: enforcement of rules on other servers' tools (`tabellion gateway`).

mod arguments;
mod inputs;
mod server;
mod tools;

use std::path::PathBuf;

use clap::Args;
use futures::FutureExt;
use rmcp::ServiceExt;
use serving::signals::{all_read, stop_signal};

use self::server::ToolServer;
use self::tools::{LogTools, ToolIdentity};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::runtime;
use crate::service::ServiceArgs;
use crate::standard_streams;
use crate::state_folder::state_folder;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion mcp --key agent.pem --url https://log.example.org",
    mut_arg("timeout", |timeout| timeout.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true))
)]
pub struct Mcp {
    /// Use the key and trust file in ./tabellion-dev
    #[arg(long, conflicts_with_all = ["key", "iss", "trust"])]
    dev: bool,
    /// The key that signs what `register` gets
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The issuer [default: the key's did:key]
    #[arg(long, value_name = "URI", requires = "key")]
    iss: Option<String>,
    /// The trust file; a new log's key is added to it
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// The folder of the files that tools may name [default: none]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The folder for registered texts [default: ~/.local/state/tabellion/mcp]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Mcp {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let state = state_folder(self.state.as_deref(), "--state", "mcp")?;
        let identity = ToolIdentity { dev: self.dev, key: self.key, iss: self.iss, trust: self.trust };
        let tools = LogTools::new(context.for_results(), identity, self.service, self.folder, state)?;
        let runtime = runtime::with_workers(1)?;
        runtime.block_on(serve(ToolServer::new(tools)))
    }
}

/// Serves until the client closes standard input, or a stop signal.
async fn serve(server: ToolServer) -> Result<(), Failure> {
    let stop = stop_signal().shared();
    let (output, written) = standard_streams::output();
    let serving = async {
        let running = server.serve((standard_streams::input(), output)).await;
        running.map_err(|error| failed(&error))?.waiting().await.map_err(|error| failed(&error))?;
        Ok::<_, Failure>(())
    };
    tokio::select! {
        result = serving => result?,
        () = stop.clone() => {}
    }
    all_read(written, stop).await;
    Ok(())
}

fn failed(error: &impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failure, "mcp", "the MCP client's messages cannot be answered")
        .fact("because", error.to_string())
}
