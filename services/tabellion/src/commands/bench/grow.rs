//! `bench grow`: makes a large log through the normal tables.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use bench::NewLog;
use bench::grow::{self, AdmitStatements, GrowPlan};
use clap::Args;
use display::counted;
use scitt::SignedStatement;
use sequencer::pin::adopt;
use store::{Head, LogStore, NewEntry};
use transparency::{BulkAdmission, Config, storage};

use super::failed;
use crate::commands::serve::config;
use crate::console::{Exit, Failure, members, safe, shell};
use crate::context::Context;
use crate::runtime;
use crate::settings::{CONFIG_FILE, Settings};

/// Worker threads for the database; statements are signed on threads of their own.
const THREADS: usize = 2;

#[derive(Debug, Args)]
pub struct Grow {
    /// The number of entries
    pub(super) size: u64,
    /// The folder of the new log
    #[arg(long, value_name = "FOLDER", default_value = "tabellion-bench")]
    pub(super) folder: PathBuf,
    /// An empty PostgreSQL database [default: a SQLite file in the folder]
    #[arg(long, value_name = "URL")]
    pub(super) db: Option<String>,
    /// Bytes of a statement
    #[arg(long, value_name = "N", default_value_t = Grow::BYTES)]
    pub(super) bytes: usize,
}

impl Grow {
    /// Bytes of a statement, unless the command says otherwise.
    pub(super) const BYTES: usize = 1024;

    /// Makes the log, and prints its size and root.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let begun = Instant::now();
        let head = self.make(context)?;
        let (size, root) = (head.size().get(), head.root().to_string());
        let (folder, seconds) = (self.folder.display().to_string(), begun.elapsed().as_secs_f64());
        context.console.print(&members! { size, root, folder, seconds }, |out| {
            writeln!(
                out,
                "log        {} with {}, in {seconds:.0} s\nroot       {root}",
                safe(&folder),
                counted(size, "entry", "entries")
            )?;
            writeln!(out, "next       tabellion bench run --existing {}", safe(&shell::path(&self.folder)))
        })
    }

    /// Creates the log, writes its entries, and lets the service sign its head and make its search index.
    pub(super) fn make(&self, context: &Context) -> Result<Head, Failure> {
        if self.folder.exists() {
            let what = format!("{} exists", safe(&self.folder.display().to_string()));
            return Err(Failure::new(Exit::Exists, "log-exists", what).hint("name another folder"));
        }
        runtime::with_workers(THREADS)?.block_on(self.grow(context))
    }

    async fn grow(&self, context: &Context) -> Result<Head, Failure> {
        let program = std::env::current_exe()?;
        let folder = std::path::absolute(&self.folder)?;
        let database = match &self.db {
            Some(url) => url.clone(),
            None => format!("sqlite:{}", folder.join("log.db").display()),
        };
        let log = NewLog { program: &program, folder: &folder, database: &database };
        grow::create(log).await.map_err(failed)?;
        let config = config::resolve(&Settings::gather(Some(&folder.join(CONFIG_FILE)), Vec::new())?)?;
        let head = self.append(context, &config).await.map_err(failed)?;
        grow::note_entries(&folder, self.plan()).map_err(failed)?;
        context.console.note("the service makes the search index");
        grow::make_index(&program, &folder).await.map_err(failed)?;
        Ok(head)
    }

    fn plan(&self) -> GrowPlan {
        GrowPlan { entries: self.size, bytes: self.bytes }
    }

    /// Appends the entries, and makes the new head the pin.
    async fn append(&self, context: &Context, config: &Config) -> anyhow::Result<Head> {
        let store = storage::open_existing(&config.database, &config.origin).await?;
        let admission = Arc::new(Admission(BulkAdmission::of(store.clone()).await?));
        let bar = context.console.entries_bar();
        bar.set_length(self.size);
        let head = grow::grow(&*store, admission, self.plan(), |count| bar.inc(count)).await?;
        bar.finish_and_clear();
        pin(&*store, config, &head).await?;
        // The service opens the database next.
        store.close().await;
        Ok(head)
    }
}

async fn pin(store: &dyn LogStore, config: &Config, head: &Head) -> anyhow::Result<()> {
    let pins = storage::pin(config)?;
    let holder = format!("bench grow: process {}", std::process::id());
    adopt(store, &*pins, &config.origin, &holder, head.size(), head.root()).await?;
    Ok(())
}

/// The decision of the log's policy.
struct Admission(BulkAdmission);

impl AdmitStatements for Admission {
    fn admit(&self, statement: &SignedStatement) -> anyhow::Result<NewEntry> {
        self.0.entry(statement).context("the log's policy refuses a statement of this command")
    }
}
