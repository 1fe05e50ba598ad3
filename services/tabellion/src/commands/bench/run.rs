//! `bench run`: measures this program.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use bench::{
    BenchDatabase, BenchOptions, BenchResult, OfferedRate, PeerService, content_types, measure, report,
};
use clap::Args;
use serde::Serialize;

use super::{ECHO, failed};
use crate::console::files::{self, Access, Existing};
use crate::console::{Failure, Report};
use crate::context::Context;
use crate::runtime;

/// The value of `--types` that stands for all content types.
const ALL_TYPES: &str = "all";

#[derive(Debug, Args)]
pub struct Run {
    /// sqlite or a PostgreSQL server's URL
    #[arg(long, value_name = "DB,…", value_delimiter = ',', default_value = "sqlite")]
    db: Vec<BenchDatabase>,
    /// Measure the log in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "db")]
    existing: Option<PathBuf>,
    /// Rounds, of which medians are taken
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Duration of each load
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    /// Clients of the closed loops
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 64, 256])]
    clients: Vec<usize>,
    /// Content types, or all [default: octet-stream]
    #[arg(
        long,
        value_name = "TYPE,…",
        value_delimiter = ',',
        default_value = "application/octet-stream",
        hide_default_value = true
    )]
    types: Vec<String>,
    /// Size of an opaque statement in bytes
    #[arg(long, value_name = "N", default_value_t = 1024)]
    bytes: usize,
    /// Open loops: requests/s, or 2x the closed loop's rate
    #[arg(long, value_name = "RATE,…", value_delimiter = ',')]
    offered: Vec<OfferedRate>,
    /// Service processes on one database
    #[arg(long, value_name = "N", default_value_t = 1)]
    processes: usize,
    /// Another service: HOST:PORT/PATH, perhaps its command
    #[arg(long, value_name = "PEER")]
    peer: Option<PeerService>,
    /// Where new logs are created
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Write the result as JSON
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the result as a page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Run {
    /// Measures, writes the files, and prints the result.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let (output, html) = (self.output.clone(), self.html.clone());
        let options = self.options()?;
        let progress = |line: String| context.console.note(line);
        // One thread, as the client of a load shares the machine with what it measures.
        let result = runtime::with_workers(1)?.block_on(measure(&options, progress)).map_err(failed)?;
        if let Some(file) = output {
            let json = serde_json::to_vec_pretty(&result).map_err(io::Error::from)?;
            files::write(&file, &json, Access::Ordinary, Existing::Replace)?;
        }
        if let Some(file) = html {
            files::write(&file, report::html(&result).as_bytes(), Access::Ordinary, Existing::Replace)?;
        }
        context.console.result(&Measured(&result))
    }

    fn options(self) -> Result<BenchOptions, Failure> {
        let types = match self.types.as_slice() {
            [all] if all == ALL_TYPES => content_types().map(str::to_owned).collect(),
            _ => self.types,
        };
        Ok(BenchOptions {
            program: std::env::current_exe()?,
            echo: ECHO.map(str::to_owned).to_vec(),
            databases: self.db,
            existing: self.existing,
            rounds: self.rounds,
            length: Duration::from_secs(self.seconds),
            clients: self.clients,
            types,
            bytes: self.bytes,
            offered: self.offered,
            processes: self.processes,
            peer: self.peer,
            folder: self.folder,
        })
    }
}

/// The result, as a command's result.
#[derive(Serialize)]
#[serde(transparent)]
struct Measured<'r>(&'r BenchResult);

impl Report for Measured<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(report::text(self.0).as_bytes())
    }
}
