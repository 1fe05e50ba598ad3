//! `tabellion gateway jwks`: prints the published verdict keys from the state folder.

use std::path::PathBuf;

use clap::Args;
use gateway::keys;

use super::config_file;
use crate::console::{Exit, Failure};
use crate::context::Context;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway jwks --config gateway.toml > jwks.json")]
pub struct Jwks {
    /// The gateway's state folder, if not that of --config FILE
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

impl Jwks {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let state = match self.state {
            Some(state) => state,
            None => config_file::read_or_dev(context)?.state,
        };
        let set = keys::published(&state).map_err(|error| {
            Failure::new(Exit::NotFound, "no-jwks", "no verdict keys are published there")
                .fact("because", error.to_string())
                .why("a gateway makes its keys at its first start, and `tabellion gateway keys` before it")
        })?;
        let set: serde_json::Value = serde_json::from_slice(&set)
            .map_err(|error| Failure::new(Exit::Failure, "no-jwks", error.to_string()))?;
        // The text for display is JSON, too.
        context.console.print(&set, |out| writeln!(out, "{}", serde_json::to_string_pretty(&set)?))
    }
}
