//! `tabellion bench`: measures how fast and at what cost this program registers, makes large logs to measure, measures the
//! explorer's pages on them, and compares two measurements.
//!
//! Not here: the measurement (`bench`).

mod compare;
mod grow;
mod pages;
mod run;

use std::path::Path;

use ::bench::{BenchResult, echo};
use clap::Subcommand;

use crate::console::{Exit, Failure, files, safe};
use crate::context::Context;
use crate::runtime;
use compare::Compare;
use grow::Grow;
use pages::Pages;
use run::Run;

/// The subcommand that serves HTTP echo, which [`Run`] starts.
const ECHO: [&str; 2] = ["bench", "echo"];
/// Worker threads of the echo server.
const ECHO_THREADS: usize = 2;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion bench run --html report.html")]
pub enum Bench {
    /// Measure registrations on this machine, and compare them with its limits
    #[command(before_help = "example:  tabellion bench run --db sqlite,postgres://me@127.0.0.1/postgres")]
    Run(Box<Run>),
    /// Compare two results of `bench run`
    #[command(before_help = "example:  tabellion bench compare before.json after.json")]
    Compare(Compare),
    /// Make a large log in a new folder, to be measured with `bench run --existing`
    #[command(before_help = "example:  tabellion bench grow 1000000 --folder large")]
    Grow(Grow),
    /// Measure the explorer's pages on a large log
    #[command(before_help = "example:  tabellion bench pages --entries 1000000 --folder large")]
    Pages(Pages),
    /// Serve HTTP without work to do
    #[command(hide = true, before_help = "example:  tabellion bench echo 8080")]
    Echo {
        /// The port
        port: u16,
    },
}

impl Bench {
    /// Runs the command.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Run(run) => run.run(context),
            Self::Compare(compare) => compare.run(context),
            Self::Grow(grow) => grow.run(context),
            Self::Pages(pages) => pages.run(context),
            Self::Echo { port } => {
                runtime::with_workers(ECHO_THREADS)?.block_on(echo::serve(port)).map_err(failed)
            }
        }
    }
}

/// Reads a result of `bench run`.
fn read_result(file: &Path) -> Result<BenchResult, Failure> {
    let bytes = files::read(file)?;
    BenchResult::parse(&bytes).map_err(|error| {
        let what = format!("{} is not a result of `bench run`", safe(&file.display().to_string()));
        Failure::new(Exit::Failure, "no-bench-result", what).fact("because", error.to_string())
    })
}

fn failed(error: anyhow::Error) -> Failure {
    Failure::new(Exit::Failure, "bench-failed", "the measurement failed")
        .fact("because", format!("{error:#}"))
        .hint("tabellion bench run --help")
}
