//! `tabellion session`: what the log holds of an agent's session, over all types. What is shown are the log's words;
//! `verify` checks them.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value as Json;

use super::entry::{EntryTable, MORE};
use crate::console::{Failure, safe};
use crate::context::Context;
use crate::service::{ServiceArgs, percent_encoded, served_list};
use crate::show::{items, text};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion session show session-1")]
pub enum Session {
    /// Show records, receipts and Verdicts of a session in the order of the log
    #[command(before_help = "example:  tabellion session show session-1")]
    Show(Show),
}

#[derive(Debug, Args)]
pub struct Show {
    /// The session identifier
    session: String,
    /// Start after this leaf index
    #[arg(long, value_name = "LEAF")]
    after: Option<u64>,
    /// Maximum number of results
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Session {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show(command) => command.run(context),
        }
    }
}

impl Show {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let entries = self.find(context)?;
        let table = EntryTable::of(&context.console);
        context.console.print(&entries, |out| lines(out, &entries.page, table))?;
        if entries.more {
            context.console.note(MORE);
        }
        Ok(())
    }

    /// Fetches the entries of the session.
    pub fn find(&self, context: &Context) -> Result<SessionEntries, Failure> {
        let after = self.after.map(|after| format!("&after={after}")).unwrap_or_default();
        let path = format!("v1/sessions/{}?limit={}{after}", percent_encoded(&self.session), self.limit);
        let service = self.service.connect(context)?;
        let (page, next): (Json, _) = service.block_on(service.client.page(&path))?;
        served_list(&page, "entries")?;
        Ok(SessionEntries { page, more: next.is_some() })
    }
}

/// A page of a session's entries, as the service describes them.
#[derive(Serialize)]
pub struct SessionEntries {
    #[serde(flatten)]
    page: Json,
    /// True if the session has more than `--limit`.
    more: bool,
}

fn lines(out: &mut dyn Write, page: &Json, table: EntryTable) -> io::Result<()> {
    table.write(out, items(page, "entries"))?;
    if !items(page, "receipts").is_empty() {
        writeln!(out, "verification receipts that share a digest with these:")?;
        table.write(out, items(page, "receipts"))?;
    }
    let counts = page.get("content_types").and_then(Json::as_object);
    for (content_type, count) in counts.into_iter().flatten() {
        writeln!(out, "{:>8}  {}", count.as_u64().unwrap_or_default(), safe(content_type))?;
    }
    items(page, "streams").iter().try_for_each(|stream| writeln!(out, "  stream  {}", text(stream, "url")))
}
