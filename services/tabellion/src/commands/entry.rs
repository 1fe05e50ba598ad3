//! `tabellion entry`: shows the log's entries, and erases, holds and releases them. The service's answers are not
//! verified here; `tabellion verify` does that.

mod erase;
mod hold;
mod prove;
mod question;
pub mod search;
pub mod table;
mod tail;

use std::path::Path;

use clap::{Args, Subcommand};
use merkle::{EntryDigest, LeafIndex};
use serde_json::{Map, Value as Json};
use url::form_urlencoded::Serializer;

use super::receipt::entry_named;
use crate::console::{Exit, Failure, members};
use crate::context::Context;
use crate::service::{Service, ServiceArgs, nonsense, served_list};
use crate::show;
use erase::Erase;
pub use hold::Admin;
use hold::{Hold, Release};
pub use search::Search;
pub use table::EntryTable;
use tail::Tail;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion entry list --limit 20")]
pub enum Entry {
    /// Show one entry
    #[command(before_help = "example:  tabellion entry get report.json.cose")]
    Get {
        /// An entry ID, a file that holds the statement, or a leaf index
        entry: String,
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// List entries in the order of the log
    #[command(before_help = "example:  tabellion entry list --newest --limit 20")]
    List {
        #[command(flatten)]
        position: ListPosition,
        /// Maximum number of results
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// Search entries by their contents
    #[command(
        before_help = "example:  tabellion entry search --issuer https://issuer.example --verdict fail"
    )]
    Search(Box<Search>),
    /// Print new entries continuously
    #[command(before_help = "example:  tabellion entry tail --json")]
    Tail(Box<Tail>),
    /// Erase the bytes of entries; proofs remain valid
    #[command(
        before_help = "example:  tabellion entry erase report.json.cose --reason 'asked to' --key operator.pem"
    )]
    Erase(Erase),
    /// Protect an entry from erasure, with an operator's statement
    #[command(
        before_help = "example:  tabellion entry hold report.json.cose --case 2026-17 --key operator.pem"
    )]
    Hold(Hold),
    /// Release a hold, with an operator's statement
    #[command(
        before_help = "example:  tabellion entry release report.json.cose --case 2026-17 --key operator.pem"
    )]
    Release(Release),
    /// List all holds, including released ones
    #[command(before_help = "example:  tabellion entry holds")]
    Holds(Admin),
}

impl Entry {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Get { entry, service } => {
                let service = service.connect(context)?;
                let id = match leaf_index(&entry) {
                    Some(index) => id_at(&service, index)?,
                    None => entry_named(&entry)?.to_string(),
                };
                let path = format!("v1/entries/{id}");
                let entry: Map<String, Json> = service.block_on(service.client.json(&path))?;
                if entry.get("entry_id").and_then(Json::as_str) != Some(id.as_str()) {
                    return Err(nonsense(format!("it is not about entry {id}")));
                }
                context.console.print(&entry, |out| show::lines(out, 0, &with_times(&entry)))
            }
            Self::List { position, limit, service } => {
                let service = service.connect(context)?;
                let path = position.path(limit as usize, []);
                let (page, next): (Json, _) = service.block_on(service.client.page(&path))?;
                let more = next.is_some();
                let table = EntryTable::of(&context.console);
                let entries = served_list(&page, "entries")?;
                context
                    .console
                    .print(&members! { #[serde(flatten)] page, more }, |out| table.write(out, entries))?;
                if more {
                    context.console.note(position.more());
                }
                Ok(())
            }
            Self::Search(search) => search.run(context),
            Self::Tail(tail) => tail.run(context),
            Self::Erase(erase) => erase.run(context),
            Self::Hold(hold) => hold.begin(context),
            Self::Release(release) => release.end(context),
            Self::Holds(admin) => hold::list(admin, context),
        }
    }
}

/// The names of facts that are Unix seconds.
const TIMES: [&str; 8] =
    ["at", "iat", "since", "verified_at", "produced_at", "committed_at", "time", "expires_at"];

/// Formats an entry's facts in [`TIMES`] as dates, for display.
pub fn with_times(entry: &Map<String, Json>) -> Map<String, Json> {
    let mut entry = entry.clone();
    let facts = entry.get_mut("facts").and_then(Json::as_object_mut);
    for (_, value) in facts.into_iter().flatten().filter(|(name, _)| TIMES.contains(&name.as_str())) {
        if let Some(seconds) = value.as_i64() {
            *value = show::time(seconds).into();
        }
    }
    entry
}

/// The remark below a list with more entries than `--limit`, oldest first.
pub const MORE: &str = "          and more: --after, --limit";

/// Order of a list of entries, and the leaf at which it starts.
#[derive(Debug, Args)]
pub struct ListPosition {
    /// Newest entries first
    #[arg(long)]
    newest: bool,
    /// Start after this leaf index
    #[arg(long, value_name = "LEAF")]
    after: Option<u64>,
    /// Stop, or with --newest start, before this leaf index
    #[arg(long, value_name = "LEAF")]
    before: Option<u64>,
}

impl ListPosition {
    /// The position of the newest entries.
    #[cfg(feature = "browse")]
    pub const NEWEST: Self = Self { newest: true, after: None, before: None };

    /// The position of the entries after a leaf and before another one, oldest first.
    pub fn between(after: Option<u64>, before: Option<LeafIndex>) -> Self {
        Self { newest: false, after, before: before.map(LeafIndex::get) }
    }

    /// Returns the path of the list from this position on, with at most `limit` entries; the filters are further query
    /// parameters.
    pub fn path<'a>(&self, limit: usize, filters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("limit", &limit.to_string());
        query.extend_pairs(self.pairs()).extend_pairs(filters);
        format!("v1/entries?{}", query.finish())
    }

    fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> {
        let order = self.newest.then(|| ("order", "newest".to_owned()));
        let after = self.after.map(|leaf| ("after", leaf.to_string()));
        let before = self.before.map(|leaf| ("before", leaf.to_string()));
        [order, after, before].into_iter().flatten()
    }

    /// Returns the remark below a list with more entries than `--limit`.
    pub fn more(&self) -> &'static str {
        match self.newest {
            true => "          and more: --before, --limit",
            false => MORE,
        }
    }
}

/// Parses a leaf index, unless a file has that name.
fn leaf_index(entry: &str) -> Option<u64> {
    entry.parse().ok().filter(|_| entry.parse::<EntryDigest>().is_err() && !Path::new(entry).exists())
}

/// Fetches the ID of the entry at a leaf; fails with `entry-unknown` if there is none.
fn id_at(service: &Service, index: u64) -> Result<String, Failure> {
    let position = ListPosition { newest: false, after: index.checked_sub(1), before: None };
    let page: Json = service.block_on(service.client.json(&position.path(1, [])))?;
    let entry = page.pointer("/entries/0").filter(|entry| entry["index"] == index);
    let id = entry.and_then(|entry| entry["entry_id"].as_str());
    id.map(str::to_owned).ok_or_else(|| {
        Failure::new(Exit::NotFound, "entry-unknown", format!("the log has no entry at leaf {index}"))
    })
}
