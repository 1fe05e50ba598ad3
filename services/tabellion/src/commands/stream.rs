//! `tabellion stream`: the audit streams of gateways (VAP), and what is missing in one. What is shown are the log's words;
//! `audit` and `verify` check them.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::Value as Json;

use super::entry::MORE;
use crate::console::{Failure, members, safe};
use crate::context::Context;
use crate::service::{ServiceArgs, percent_encoded};
use crate::show::{items, number, text};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion stream list https://gateway.example")]
pub enum Stream {
    /// List the streams of a gateway
    #[command(before_help = "example:  tabellion stream list https://gateway.example")]
    List(List),
    /// Show a stream's records, its gaps, and whether it is closed
    #[command(before_help = "example:  tabellion stream show https://gateway.example session-1")]
    Show(Show),
}

#[derive(Debug, Args)]
pub struct List {
    /// The gateway (`iss` of its records)
    gateway: String,
    /// Start after this stream
    #[arg(long, value_name = "STREAM")]
    after: Option<String>,
    /// Maximum number of results
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, Args)]
pub struct Show {
    /// The gateway (`iss` of its records)
    gateway: String,
    /// The stream: a session, or unbound: and an instance
    stream: String,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Stream {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
        }
    }
}

impl List {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let after = self.after.map(|after| format!("&after={}", percent_encoded(&after))).unwrap_or_default();
        let path = format!("v1/streams/{}?limit={}{after}", percent_encoded(&self.gateway), self.limit);
        let service = self.service.connect(context)?;
        let (page, next): (Json, _) = service.block_on(service.client.page(&path))?;
        let more = next.is_some();
        let truncated = page.get("truncated").and_then(Json::as_bool).unwrap_or_default();
        context.console.print(&members! { #[serde(flatten)] page, more }, |out| {
            items(&page, "streams").iter().try_for_each(|stream| line(out, stream))
        })?;
        if truncated {
            context.console.note("          the newest entries are not indexed yet: streams may be missing");
        }
        if more {
            context.console.note(MORE);
        }
        Ok(())
    }
}

impl Show {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let (gateway, stream) = (percent_encoded(&self.gateway), percent_encoded(&self.stream));
        let service = self.service.connect(context)?;
        let path = format!("v1/streams/{gateway}/{stream}");
        let stream: Json = service.block_on(service.client.json(&path))?;
        context.console.print(&stream, |out| records(out, &stream))
    }
}

fn line(out: &mut dyn Write, stream: &Json) -> io::Result<()> {
    let first = stream.get("first").unwrap_or(&Json::Null);
    let (name, entry, at) = (text(stream, "stream"), text(first, "entry_id"), text(first, "at"));
    writeln!(out, "{name}  from {} on  {entry}  {at}", number(first, "seq"))
}

fn records(out: &mut dyn Write, stream: &Json) -> io::Result<()> {
    items(stream, "records").iter().try_for_each(|record| record_line(out, record))?;
    for gap in items(stream, "gaps") {
        writeln!(out, "missing  {} to {}", number(gap, "from"), number(gap, "to"))?;
    }
    for seq in items(stream, "erased") {
        writeln!(out, "erased   {seq}")?;
    }
    for open in items(stream, "open_decisions") {
        writeln!(out, "open     {}: a decision without outcome", number(open, "seq"))?;
    }
    for unknown in items(stream, "unknown_decisions") {
        writeln!(out, "unknown  {}: an outcome without decision", number(unknown, "seq"))?;
    }
    let is = |name: &str| stream.get(name).and_then(Json::as_bool).unwrap_or_default();
    let ending = match (is("closed"), is("truncated")) {
        (_, true) => "there may be more records than were read",
        (true, false) => "closed",
        (false, false) => "not closed: its end may be missing",
    };
    writeln!(out, "{ending}; as of tree size {}", number(stream, "tree_size"))
}

fn record_line(out: &mut dyn Write, record: &Json) -> io::Result<()> {
    let of = |name: &str| record.get(name).and_then(Json::as_str).map(safe);
    let what = [of("verdict"), of("status"), of("tool")].into_iter().flatten();
    let what: String = what.map(|word| format!("  {word}")).collect();
    let (kind, entry, at) = (text(record, "kind"), text(record, "entry_id"), text(record, "at"));
    writeln!(out, "{:>8}  {entry}  {at}  {kind}{what}", number(record, "seq"))
}
