//! `tabellion entry search`: searches entries by content. Only the answers of `--prove` are verified.

use clap::Args;
use client::{Client, ClientError};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value as Json;

use super::prove::ProofArgs;
use super::question::question;
use super::{EntryTable, ListPosition};
use crate::console::Failure;
use crate::context::Context;
use crate::service::ServiceArgs;

/// What must be true of an entry.
#[derive(Clone, Debug, Default, Args)]
pub struct Filters {
    /// The issuer (`iss`)
    #[arg(long, value_name = "ISS")]
    issuer: Option<String>,
    /// The subject (`sub`)
    #[arg(long, value_name = "SUB")]
    subject: Option<String>,
    /// The content type
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// A session identifier
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// A verdict or decision
    #[arg(long, value_name = "WORD")]
    verdict: Option<String>,
    /// The called tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Also agent, receipt_id, call_id, tier, digest …
    #[arg(long, value_name = "NAME=VALUE", value_parser = named)]
    by: Vec<(String, String)>,
}

impl Filters {
    /// Parses terms such as `issuer=https://a.example verdict=fail`, separated by spaces. A term without `=` is the
    /// beginning of a subject.
    ///
    /// # Errors
    /// A sentence that lists the names, if one is unknown.
    #[cfg(feature = "browse")]
    pub fn of_terms(terms: &str) -> Result<Self, String> {
        let mut filters = Self::default();
        for term in terms.split_whitespace() {
            filters.add(term)?;
        }
        Ok(filters)
    }

    #[cfg(feature = "browse")]
    fn add(&mut self, term: &str) -> Result<(), String> {
        let (name, value) = term.split_once('=').unwrap_or(("subject_prefix", term));
        let flag = match name {
            "issuer" => &mut self.issuer,
            "subject" => &mut self.subject,
            "content_type" => &mut self.content_type,
            "session" => &mut self.session,
            "verdict" => &mut self.verdict,
            "tool" => &mut self.tool,
            _ => {
                self.by.push(named(&format!("{name}={value}"))?);
                return Ok(());
            }
        };
        *flag = Some(value.to_owned());
        Ok(())
    }

    /// Returns the filters as query parameters.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = [
            ("issuer", &self.issuer),
            ("subject", &self.subject),
            ("content_type", &self.content_type),
            ("session", &self.session),
            ("verdict", &self.verdict),
            ("tool", &self.tool),
        ];
        let named = values.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        named.chain(self.by.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

#[derive(Debug, Args)]
#[command(
    mut_arg("timeout", |timeout| timeout.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true)),
    mut_arg("token_file", |token_file| token_file.hide(true)),
    mut_arg("before", |before| before.hide(true)),
    mut_arg("after", |after| after.hide(true)),
    mut_arg("to_time", |time| time.hide(true)),
)]
pub struct Search {
    #[command(flatten)]
    filters: Filters,
    /// Committed at this time or later; --to-time: before
    #[arg(long, value_name = "TIME", value_parser = time)]
    from_time: Option<String>,
    /// Committed before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    to_time: Option<String>,
    #[command(flatten)]
    position: ListPosition,
    /// Maximum number of results
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    proof: ProofArgs,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Search {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        if self.proof.prove {
            let question = question(self.pairs(), &self.position)?;
            let filters: Vec<(&str, &str)> = self.pairs().collect();
            return self.proof.run(context, &self.service.connect(context)?, question, &filters);
        }
        let found = self.find(context)?;
        let table = EntryTable::of(&context.console);
        context.console.print(&found, |out| table.write(out, &found.entries))?;
        if found.more {
            context.console.note(self.position.more());
        }
        Ok(())
    }

    /// Fetches the entries.
    pub fn find(&self, context: &Context) -> Result<FoundEntries, Failure> {
        let service = self.service.connect(context)?;
        let wanted = self.limit as usize;
        let first = self.position.path(wanted, self.pairs());
        let FetchedEntries { mut entries, indexed_to, next } =
            service.block_on(FetchedEntries::fetch(&service.client, first, wanted))?;
        let more = entries.len() > wanted || next.is_some();
        entries.truncate(wanted);
        Ok(FoundEntries { entries, indexed_to, more })
    }

    /// Returns the times and filters as query parameters.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let times = [("from_time", &self.from_time), ("to_time", &self.to_time)];
        let times = times.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        times.chain(self.filters.pairs())
    }
}

/// Entries of a search, and where it goes on.
#[derive(Debug, Default)]
pub struct FetchedEntries {
    /// The rows, as the service gives them; may be more than were requested.
    pub entries: Vec<Json>,
    /// The size of the tree that was searched; null without filters, which list all entries.
    pub indexed_to: Json,
    /// The path of the entries that follow; `None` if there are none.
    pub next: Option<String>,
}

impl FetchedEntries {
    /// Fetches entries, from the path `first` on, until there are `wanted` or no more. A page of the service may be
    /// short although there are more entries, because the log limits the number of entries that it examines per request.
    pub async fn fetch(client: &Client, first: String, wanted: usize) -> Result<Self, ClientError> {
        let mut fetched = Self { next: Some(first), ..Self::default() };
        while fetched.entries.len() < wanted
            && let Some(path) = fetched.next.take()
        {
            let (mut page, following): (Json, _) = client.page(&path).await?;
            fetched.next = following;
            fetched.indexed_to = page.get_mut("indexed_to").map(Json::take).unwrap_or_default();
            let Some(Json::Array(found)) = page.get_mut("entries").map(Json::take) else {
                return Err(ClientError::Nonsense(format!("{path}: it has no list \"entries\"")));
            };
            fetched.entries.extend(found);
        }
        Ok(fetched)
    }
}

/// The result of a search.
#[derive(Serialize)]
pub struct FoundEntries {
    entries: Vec<Json>,
    /// The size of the tree that was searched; null without filters, which list all entries.
    indexed_to: Json,
    /// True if the log has more than `--limit`.
    more: bool,
}

/// Parses a time, or a day, which begins at midnight UTC, and formats it for the service.
fn time(text: &str) -> Result<String, String> {
    let midnight = |day: Date| day.to_zoned(TimeZone::UTC).map(|time| time.timestamp());
    let time = text.parse::<Timestamp>().or_else(|_| text.parse().and_then(midnight));
    time.map(|time| time.to_string()).map_err(|_| "give a time as 2026-11-22T08:00:00Z, or a day".to_owned())
}

/// Further search parameters of `GET /v1/entries`. A stream of entries takes no prefixes.
const NAMES: [&str; 12] = [
    "agent",
    "receipt_id",
    "aer_id",
    "call_id",
    "task_type",
    "tier",
    "digest",
    "payload_digest",
    "subject_prefix",
    "issuer_prefix",
    "session_prefix",
    "agent_prefix",
];

fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if NAMES.contains(&name) => Ok((name.to_owned(), value.to_owned())),
        _ => {
            Err(format!("give one of {} with its value, e.g. agent=did:web:agent.example", NAMES.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(terms: &str) -> Vec<(String, String)> {
        let filters = Filters::of_terms(terms).unwrap();
        filters.pairs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn terms_are_the_filters_of_the_flags() {
        let expected = [("issuer", "https://a.example"), ("tool", "rm"), ("agent", "did:web:a=b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(pairs(" tool=rm  agent=did:web:a=b issuer=https://a.example"), expected);
        assert_eq!(pairs("hello"), [("subject_prefix".to_owned(), "hello".to_owned())]);
        assert!(pairs("").is_empty());
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        assert!(Filters::of_terms("colour=red").unwrap_err().contains("receipt_id"));
    }
}
