//! `bench pages`: measures the explorer's pages on a large log.

use std::io::{self, Write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use bench::pages::{self, PagesPlan, PagesResult};
use clap::Args;
use serde::Serialize;

use super::failed;
use super::grow::Grow;
use crate::console::{Failure, Report};
use crate::context::Context;
use crate::runtime;

#[derive(Debug, Args)]
pub struct Pages {
    /// The folder of a log of `bench grow`
    #[arg(long, value_name = "FOLDER", default_value = "tabellion-bench")]
    folder: PathBuf,
    /// Make the log first, with this number of entries
    #[arg(long, value_name = "N")]
    entries: Option<NonZeroU64>,
    /// An empty PostgreSQL database for the new log [default: a SQLite file]
    #[arg(long, value_name = "URL", requires = "entries")]
    db: Option<String>,
    /// Requests of each page
    #[arg(long, value_name = "N", default_value = "100")]
    rounds: NonZeroUsize,
}

impl Pages {
    /// Makes the log if it is to be made, measures, and prints the result.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let Self { folder, entries, db, rounds } = self;
        if let Some(size) = entries {
            Grow { size: size.get(), folder: folder.clone(), db, bytes: Grow::BYTES }.make(context)?;
        }
        let plan = PagesPlan { program: std::env::current_exe()?, folder, rounds };
        context.console.note("the service registers a session and a chain, and is asked for all pages");
        // One thread, as the client shares the machine with what it measures.
        let result = runtime::with_workers(1)?.block_on(pages::measure(&plan)).map_err(failed)?;
        context.console.result(&MeasuredPages(&result))
    }
}

/// The result, as a command's result.
#[derive(Serialize)]
#[serde(transparent)]
struct MeasuredPages<'r>(&'r PagesResult);

impl Report for MeasuredPages<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(pages::text(self.0).as_bytes())
    }
}
