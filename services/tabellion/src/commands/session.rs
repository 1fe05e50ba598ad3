//! `tabellion session`: what the log holds of an agent's session, over all types. What is shown are the log's words;
//! `verify` checks them.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::Value as Json;

use super::entry::{MORE, line};
use crate::console::{Failure, members, safe};
use crate::context::Context;
use crate::service::{ServiceArgs, percent_encoded};
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
        let after = self.after.map(|after| format!("&after={after}")).unwrap_or_default();
        let path = format!("v1/sessions/{}?limit={}{after}", percent_encoded(&self.session), self.limit);
        let service = self.service.connect(context)?;
        let (page, next): (Json, _) = service.block_on(service.client.page(&path))?;
        let more = next.is_some();
        context.console.print(&members! { #[serde(flatten)] page, more }, |out| lines(out, &page))?;
        if more {
            context.console.note(MORE);
        }
        Ok(())
    }
}

fn lines(out: &mut dyn Write, page: &Json) -> io::Result<()> {
    items(page, "entries").iter().try_for_each(|entry| line(out, entry))?;
    if !items(page, "receipts").is_empty() {
        writeln!(out, "verification receipts that share a digest with these:")?;
        items(page, "receipts").iter().try_for_each(|receipt| line(out, receipt))?;
    }
    let counts = page.get("content_types").and_then(Json::as_object);
    for (content_type, count) in counts.into_iter().flatten() {
        writeln!(out, "{:>8}  {}", count.as_u64().unwrap_or_default(), safe(content_type))?;
    }
    items(page, "streams").iter().try_for_each(|stream| writeln!(out, "  stream  {}", text(stream, "url")))
}
