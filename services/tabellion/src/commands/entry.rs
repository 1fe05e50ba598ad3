//! `tabellion entry`: what the log says about its entries, and taking their bytes out. What is said are the log's words;
//! `verify` checks them.

mod erase;
mod hold;
mod search;
mod tail;

use std::io::{self, Write};

use clap::Subcommand;
use serde::Serialize;
use serde_json::Value as Json;

use super::receipt::entry_named;
use crate::cli::Context;
use crate::console::{Failure, Report, safe};
use crate::service::ServiceArgs;
use crate::show;
use erase::Erase;
pub use hold::Admin;
use hold::Hold;
use search::Search;
use tail::Tail;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion entry list --limit 20")]
pub enum Entry {
    /// One entry
    #[command(before_help = "example:  tabellion entry get report.json.cose")]
    Get {
        /// An entry ID, or a file that holds the statement
        entry: String,
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// Entries in order
    #[command(before_help = "example:  tabellion entry list --limit 20")]
    List {
        /// Start after this leaf index
        #[arg(long, value_name = "LEAF")]
        after: Option<u64>,
        /// How many at most
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// Entries by what they say
    #[command(
        before_help = "example:  tabellion entry search --issuer https://issuer.example --verdict fail"
    )]
    Search(Box<Search>),
    /// Entries as they come, for ever
    #[command(before_help = "example:  tabellion entry tail --json")]
    Tail(Box<Tail>),
    /// Take the bytes of entries out of the log; its proofs stand
    #[command(
        before_help = "example:  tabellion entry erase report.json.cose --reason 'asked to' --key operator.pem"
    )]
    Erase(Erase),
    /// Keep an entry from being erased
    #[command(before_help = "example:  tabellion entry hold report.json.cose --case 2026-17")]
    Hold(Hold),
    /// End a hold
    #[command(before_help = "example:  tabellion entry release report.json.cose --case 2026-17")]
    Release(Hold),
    /// Every hold, ended ones included
    #[command(before_help = "example:  tabellion entry holds")]
    Holds(Admin),
}

impl Entry {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Get { entry, service } => {
                let path = format!("v1/entries/{}", entry_named(&entry)?);
                let service = service.connect(context)?;
                context.console.result(&One(service.block_on(service.client.json(&path))?))
            }
            Self::List { after, limit, service } => {
                let after = after.map(|after| format!("&after={after}")).unwrap_or_default();
                let service = service.connect(context)?;
                let page =
                    service.block_on(service.client.json(&format!("v1/entries?limit={limit}{after}")))?;
                context.console.result(&Many(page))
            }
            Self::Search(search) => search.run(context),
            Self::Tail(tail) => tail.run(context),
            Self::Erase(erase) => erase.run(context),
            Self::Hold(hold) => hold.begin(context),
            Self::Release(hold) => hold.end(context),
            Self::Holds(admin) => hold::list(admin, context),
        }
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct One(Json);

impl Report for One {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.0 {
            Json::Object(members) => show::lines(out, 0, members),
            other => writeln!(out, "{}", safe(&other.to_string())),
        }
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Many(Json);

impl Report for Many {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let entries = self.0.get("entries").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        entries.iter().try_for_each(|entry| line(out, entry))
    }
}

/// An entry on a line of its own.
fn line(out: &mut dyn Write, entry: &Json) -> io::Result<()> {
    let text = |name: &str| safe(entry.get(name).and_then(Json::as_str).unwrap_or("-")).into_owned();
    let index = entry.get("index").and_then(Json::as_u64).unwrap_or_default();
    let (id, content_type, iss, sub) = (text("entry_id"), text("content_type"), text("iss"), text("sub"));
    writeln!(out, "{index:>8}  {id}  {content_type}  {iss}  {sub}")
}
