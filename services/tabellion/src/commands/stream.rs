//! `tabellion stream`: the audit streams of gateways (VAP), and what is missing in one. What is shown are the log's words;
//! `audit` and `verify` check them.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::Value as Json;

use super::entry::MORE;
use crate::console::{Cell, Column, Failure, Table, members};
use crate::context::Context;
use crate::service::{ServiceArgs, percent_encoded};
use crate::show::{items, number, text};

/// The columns of a list of streams.
const STREAMS: &[Column] = &[
    Column::text("stream", 0),
    Column::number("from record", 0),
    Column::text("first entry", 0),
    Column::text("committed", 0),
];
/// The columns of a stream's records.
const RECORDS: &[Column] = &[
    Column::number("record", 8),
    Column::text("entry", 0),
    Column::text("recorded", 0),
    Column::text("kind", 0),
    Column::text("result", 0),
];

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
            let rows: Vec<Vec<Cell>> = items(&page, "streams").iter().map(stream_row).collect();
            Table::of(&context.console, STREAMS).write(out, &rows)
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
        let table = Table::of(&context.console, RECORDS);
        context.console.print(&stream, |out| records(out, table, &stream))
    }
}

/// A stream with its first record.
fn stream_row(stream: &Json) -> Vec<Cell> {
    let first = stream.get("first").unwrap_or(&Json::Null);
    vec![
        Cell::text(&text(stream, "stream")),
        Cell::text(&number(first, "seq").to_string()),
        Cell::id(&text(first, "entry_id")),
        Cell::text(&text(stream, "at")),
    ]
}

fn records(out: &mut dyn Write, table: Table, stream: &Json) -> io::Result<()> {
    let rows: Vec<Vec<Cell>> = items(stream, "records").iter().map(record_row).collect();
    table.write(out, &rows)?;
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

fn record_row(record: &Json) -> Vec<Cell> {
    let of = |name: &str| record.get(name).and_then(Json::as_str);
    let result: Vec<&str> = [of("verdict"), of("status"), of("tool")].into_iter().flatten().collect();
    vec![
        Cell::text(&number(record, "seq").to_string()),
        Cell::id(&text(record, "entry_id")),
        Cell::text(&text(record, "at")),
        Cell::text(&text(record, "kind")),
        Cell::text(&result.join("  ")),
    ]
}
