//! `tabellion policy show`: prints the policy in force or an earlier one, or the history of policies.

use std::io::{self, Write};

use clap::Args;
use serde_json::Value as Json;

use crate::console::{Failure, members, safe};
use crate::context::Context;
use crate::service::ServiceArgs;
use crate::show::items;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion policy show --history")]
pub struct Show {
    /// The revision [default: the one in force]
    #[arg(long, value_name = "NUMBER", conflicts_with = "history")]
    revision: Option<u64>,
    /// List all policies of the log, newest first
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Show {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let service = self.service.connect(context)?;
        let path = match self.revision {
            Some(revision) => format!("v1/policy/{revision}"),
            None => "v1/policy".to_owned(),
        };
        let shown: Json = service.block_on(service.client.json(&path))?;
        match self.history {
            true => {
                let history = items(&shown, "history");
                context.console.print(&members! { history: &shown["history"] }, |out| lines(out, history))
            }
            false => context.console.print(&shown, |out| {
                ENTRY.iter().try_for_each(|name| writeln!(out, "{name:<14} {}", cell(&shown[name])))?;
                let text = serde_json::to_string_pretty(&shown["policy"])?;
                writeln!(out)?;
                text.lines().try_for_each(|line| writeln!(out, "{}", safe(line)))
            }),
        }
    }
}

/// The members of an entry, in display order.
const ENTRY: [&str; 6] = ["revision", "index", "entry_id", "digest", "at", "in_force_from"];

fn lines(out: &mut dyn Write, history: &[Json]) -> io::Result<()> {
    writeln!(out, "{:>8}  {:>8}  {:<20}  entry", "revision", "leaf", "committed")?;
    history.iter().try_for_each(|policy| {
        let [revision, leaf, at, entry] =
            ["revision", "index", "at", "entry_id"].map(|name| cell(&policy[name]));
        writeln!(out, "{revision:>8}  {leaf:>8}  {at:<20}  {entry}")
    })
}

/// Formats a JSON value for display, escaped; `-` for null.
fn cell(value: &Json) -> String {
    match value {
        Json::String(text) => safe(text).into_owned(),
        Json::Null => "-".to_owned(),
        other => safe(&other.to_string()).into_owned(),
    }
}
