//! `tabellion policy show`: prints the policy in force or an earlier one, or the history of policies.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;
use serde_json::Value as Json;

use crate::cli::Context;
use crate::console::{Failure, Report, safe};
use crate::service::ServiceArgs;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion policy show --history")]
pub struct Show {
    /// The policy of this revision [default: the one in force]
    #[arg(long, value_name = "NUMBER", conflicts_with = "history")]
    revision: Option<u64>,
    /// List every policy of the log, newest first
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
            true => context.console.result(&History { history: shown["history"].clone() }),
            false => context.console.result(&Shown(shown)),
        }
    }
}

/// The members of an entry, in display order.
const ENTRY: [&str; 6] = ["revision", "index", "entry_id", "digest", "at", "in_force_from"];

#[derive(Serialize)]
#[serde(transparent)]
struct Shown(Json);

impl Report for Shown {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for name in ENTRY {
            writeln!(out, "{name:<14} {}", told(&self.0[name]))?;
        }
        let text = serde_json::to_string_pretty(&self.0["policy"]).map_err(io::Error::from)?;
        writeln!(out)?;
        text.lines().try_for_each(|line| writeln!(out, "{}", safe(line)))
    }
}

#[derive(Serialize)]
struct History {
    history: Json,
}

impl Report for History {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{:>8}  {:>8}  {:<20}  entry", "revision", "leaf", "committed")?;
        let policies = self.history.as_array().map_or(&[][..], Vec::as_slice);
        policies.iter().try_for_each(|policy| {
            let [revision, leaf, at, entry] =
                ["revision", "index", "at", "entry_id"].map(|name| told(&policy[name]));
            writeln!(out, "{revision:>8}  {leaf:>8}  {at:<20}  {entry}")
        })
    }
}

fn told(value: &Json) -> String {
    match value {
        Json::String(text) => safe(text).into_owned(),
        Json::Null => "-".to_owned(),
        other => safe(&other.to_string()).into_owned(),
    }
}
