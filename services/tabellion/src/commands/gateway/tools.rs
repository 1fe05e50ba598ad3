//! `tabellion gateway tools`: lists the pinned tool definitions of servers, and approves changes.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use gateway::tools::{self, OperatorError, Tool, ToolState, Which};
use serde::Serialize;

use super::config_file;
use crate::cli::Context;
use crate::console::{Exit, Failure, Report, safe};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion gateway tools list")]
pub enum Tools {
    /// Every tool that clients have listed, and whether it is still what it was
    #[command(before_help = "example:  tabellion gateway tools list --json")]
    List,
    /// Let tools be called as they were listed last; a running gateway sees it at once
    Approve(Approve),
}

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway tools approve /mcp payments.send")]
pub struct Approve {
    /// The route, by its path
    #[arg(required_unless_present = "all", requires = "tool")]
    route: Option<String>,
    /// The tool, as clients call it
    tool: Option<String>,
    /// Only if the tool still has this digest, as `list` shows it
    #[arg(long, value_name = "DIGEST", requires = "tool")]
    digest: Option<String>,
    /// All tools of all routes
    #[arg(long, conflicts_with = "route")]
    all: bool,
}

impl Tools {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = config_file::read_or_dev(context)?;
        let runtime = super::runtime()?;
        match self {
            Self::List => {
                let tools = runtime.block_on(tools::list(&config)).map_err(failed)?;
                context.console.result(&Listed { tools })
            }
            Self::Approve(approve) => {
                let approved = runtime.block_on(tools::approve(&config, &approve.which())).map_err(failed)?;
                context.console.result(&Approved { approved })
            }
        }
    }
}

impl Approve {
    fn which(self) -> Which {
        match (self.route, self.tool) {
            (Some(route), Some(tool)) => Which::One { route, tool, digest: self.digest },
            _ => Which::All,
        }
    }
}

/// Converts an error of listing or approving tools.
pub fn failed(error: OperatorError) -> Failure {
    let told = error.to_string();
    match error {
        OperatorError::NoTool(..) => {
            Failure::new(Exit::NotFound, "no-tool", told).hint("tabellion gateway tools list")
        }
        OperatorError::Moved(..) => {
            Failure::new(Exit::Exists, "tool-moved", told).hint("tabellion gateway tools list")
        }
        OperatorError::Store(_) | OperatorError::Commit(_) => {
            Failure::new(Exit::Failure, "gateway-evidence", told)
        }
    }
}

#[derive(Serialize)]
struct Listed {
    tools: Vec<Tool>,
}

impl Report for Listed {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.tools.is_empty() {
            return writeln!(out, "no client has listed a tool yet");
        }
        for tool in &self.tools {
            line(out, tool)?;
            if tool.state == ToolState::Changed {
                told(out, "was", tool.was.as_deref())?;
            }
            if matches!(tool.state, ToolState::Changed | ToolState::Waiting) {
                told(out, "says", tool.says.as_deref())?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Approved {
    approved: Vec<Tool>,
}

impl Report for Approved {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.approved.is_empty() {
            true => writeln!(out, "nothing was left to approve"),
            false => self.approved.iter().try_for_each(|tool| line(out, tool)),
        }
    }
}

fn line(out: &mut dyn Write, tool: &Tool) -> io::Result<()> {
    let digest = tool.digest.as_ref().map_or("", |digest| digest.as_str());
    let state = tool.state.as_str();
    writeln!(out, "{state:<9}  {}  {}  {}", safe(&tool.route), safe(&tool.tool), safe(digest))
}

fn told(out: &mut dyn Write, what: &str, text: Option<&str>) -> io::Result<()> {
    writeln!(out, "  {what:<5}    {}", safe(text.unwrap_or("(too long to be kept)")))
}
