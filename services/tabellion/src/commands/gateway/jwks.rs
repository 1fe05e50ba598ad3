//! `tabellion gateway jwks`: prints the published verdict keys from the state folder.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use gateway::keys;
use serde::Serialize;

use super::config_file;
use crate::cli::Context;
use crate::console::{Exit, Failure, Report};

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
        let set = serde_json::from_slice(&set)
            .map_err(|error| Failure::new(Exit::Failure, "no-jwks", error.to_string()))?;
        context.console.result(&Set(set))
    }
}

/// A JWK set, which is JSON in both output formats.
#[derive(Serialize)]
#[serde(transparent)]
struct Set(serde_json::Value);

impl Report for Set {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", serde_json::to_string_pretty(&self.0)?)
    }
}
