//! `tabellion gateway tools`: lists the pinned tool definitions of servers, and approves changes.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use gateway::tools::{self, OperatorError, PinnedTool, ToolSelection, ToolState};

use super::config_file;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion gateway tools list")]
pub enum Tools {
    /// List the tools that clients have seen, and whether their descriptions changed
    #[command(before_help = "example:  tabellion gateway tools list --json")]
    List,
    /// Approve the newest descriptions of tools, effective immediately
    Approve(Approve),
}

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway tools approve /mcp payments.send")]
pub struct Approve {
    /// The route, by its path
    #[arg(required_unless_present = "all", requires = "tool")]
    route: Option<String>,
    /// The tool's name for clients
    tool: Option<String>,
    /// Approve only if the tool's digest in `list` is this one
    #[arg(long, value_name = "DIGEST", requires = "tool")]
    digest: Option<String>,
    /// All tools of all routes
    #[arg(long, conflicts_with = "route")]
    all: bool,
}

impl Tools {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = config_file::read_or_dev(context)?;
        let runtime = runtime::multi_threaded()?;
        match self {
            Self::List => {
                let tools = runtime.block_on(tools::list(&config)).map_err(failed)?;
                context.console.print(&members! { tools }, |out| match tools.is_empty() {
                    true => writeln!(out, "no client has listed a tool yet"),
                    false => tools.iter().try_for_each(|tool| lines(out, tool)),
                })
            }
            Self::Approve(approve) => {
                let approved = runtime.block_on(tools::approve(&config, &approve.which())).map_err(failed)?;
                context.console.print(&members! { approved }, |out| match approved.is_empty() {
                    true => writeln!(out, "nothing was left to approve"),
                    false => approved.iter().try_for_each(|tool| line(out, tool)),
                })
            }
        }
    }
}

impl Approve {
    fn which(self) -> ToolSelection {
        match (self.route, self.tool) {
            (Some(route), Some(tool)) => ToolSelection::One { route, tool, digest: self.digest },
            _ => ToolSelection::All,
        }
    }
}

/// Converts an error of listing or approving tools.
pub fn failed(error: OperatorError) -> Failure {
    let detail = error.to_string();
    match error {
        OperatorError::NoTool(..) => {
            Failure::new(Exit::NotFound, "no-tool", detail).hint("tabellion gateway tools list")
        }
        OperatorError::Moved(..) => {
            Failure::new(Exit::Exists, "tool-moved", detail).hint("tabellion gateway tools list")
        }
        OperatorError::Store(_) | OperatorError::Commit(_) => {
            Failure::new(Exit::Failure, "gateway-evidence", detail)
        }
    }
}

fn lines(out: &mut dyn Write, tool: &PinnedTool) -> io::Result<()> {
    line(out, tool)?;
    if tool.state == ToolState::Changed {
        description(out, "was", tool.was.as_deref())?;
    }
    if matches!(tool.state, ToolState::Changed | ToolState::Waiting) {
        description(out, "says", tool.says.as_deref())?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, tool: &PinnedTool) -> io::Result<()> {
    let digest = tool.digest.as_ref().map_or("", |digest| digest.as_str());
    let state = tool.state.as_str();
    writeln!(out, "{state:<9}  {}  {}  {}", safe(&tool.route), safe(&tool.tool), safe(digest))
}

fn description(out: &mut dyn Write, what: &str, text: Option<&str>) -> io::Result<()> {
    writeln!(out, "  {what:<5}    {}", safe(text.unwrap_or("(too long to be kept)")))
}
