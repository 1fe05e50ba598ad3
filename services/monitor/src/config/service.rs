//! SCITT services to watch, and their tables in the configuration file.
//!
//! ```toml
//! [[service]]
//! name = "theirs"
//! url = "https://transparency.example/"
//! trust = "trust.toml"                        # [[log]] tables with the pinned receipt keys
//! entries = [
//!   "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",   # SHA-256 of the statement
//!   { statement = "release.cose" },
//!   { id = "2.18", statement = "release.cose" },                          # for a service with its own entry IDs
//! ]
//! ```

use std::path::PathBuf;
use std::time::Duration;

use merkle::EntryDigest;
use serde::Deserialize;
use serving::config_file::{ConfigReader, SpannedText};
use toml::Spanned;
use url::Url;

use super::{seconds, with_slash};
use crate::limits::{LAG, MAX_LISTED, UNREACHABLE_AFTER};

/// A SCITT service to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTarget {
    /// The service's name in the configuration; also the name of its folder in the state directory.
    pub name: String,
    /// Base URL of SCRAPI, with a trailing slash.
    pub url: Url,
    /// Path of the `trust.toml` with the service's receipt keys.
    pub trust: PathBuf,
    /// PEM file with additional root certificates for TLS.
    pub ca_file: Option<PathBuf>,
    /// Maximum time without a usable answer before an alarm is raised.
    pub unreachable_after: Duration,
    /// Maximum time for which a replica may be behind; after that, older receipts and missing entries are an alarm.
    pub lag: Duration,
    /// The entries to watch.
    pub entries: Vec<WatchedEntry>,
}

/// An entry whose receipts are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedEntry {
    /// The service's ID of the entry; by default the digest in hex.
    pub id: Option<String>,
    /// The digest or statement that the receipts must be for.
    pub what: WatchedStatement,
}

/// Identification of a watched entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedStatement {
    /// SHA-256 of its statement.
    Digest(EntryDigest),
    /// Path of a file with the statement.
    File(PathBuf),
}

impl ServiceTarget {
    /// A service with the default thresholds of [`limits`](crate::limits) and no entries.
    pub fn new(name: &str, url: Url, trust: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            url,
            trust,
            ca_file: None,
            unreachable_after: UNREACHABLE_AFTER,
            lag: LAG,
            entries: Vec::new(),
        }
    }
}

/// A `[[service]]` table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceTable {
    pub name: SpannedText,
    url: SpannedText,
    trust: PathBuf,
    ca_file: Option<PathBuf>,
    unreachable_after: Option<SpannedText>,
    lag: Option<SpannedText>,
    #[serde(default)]
    entries: Vec<Spanned<EntryTable>>,
}

/// An entry in the configuration: a digest, or a table.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum EntryTable {
    /// SHA-256 of the statement.
    Digest(String),
    /// A table with an ID and one of digest and statement.
    Named(NamedEntry),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedEntry {
    id: Option<String>,
    digest: Option<String>,
    statement: Option<PathBuf>,
}

impl ServiceTable {
    /// Converts the table to a target.
    pub fn read(self, reader: &mut ConfigReader<'_>) -> Option<ServiceTarget> {
        if !(1..=MAX_LISTED).contains(&self.entries.len()) {
            let why = format!("1 to {MAX_LISTED} entries are watched, not {}", self.entries.len());
            reader.mistake(Some(self.name.span()), "entries", why);
        }
        let url = reader.http("url", &self.url).map(with_slash);
        let silence = seconds(reader, "unreachable_after", self.unreachable_after.as_ref(), ..);
        let lag = seconds(reader, "lag", self.lag.as_ref(), ..);
        let entries = self.entries.into_iter().filter_map(|entry| watched(reader, entry)).collect();
        let target = ServiceTarget::new(self.name.get_ref(), url?, reader.path(self.trust));
        Some(ServiceTarget {
            ca_file: reader.relative(self.ca_file),
            unreachable_after: silence.unwrap_or(target.unreachable_after),
            lag: lag.unwrap_or(target.lag),
            entries,
            ..target
        })
    }
}

fn watched(reader: &mut ConfigReader<'_>, entry: Spanned<EntryTable>) -> Option<WatchedEntry> {
    let span = entry.span();
    match entry.into_inner().read(reader) {
        Ok(entry) => Some(entry),
        Err(why) => {
            reader.mistake(Some(span), "entries", why);
            None
        }
    }
}

impl EntryTable {
    fn read(self, reader: &ConfigReader<'_>) -> Result<WatchedEntry, String> {
        let named = match self {
            Self::Digest(digest) => NamedEntry { id: None, digest: Some(digest), statement: None },
            Self::Named(named) => named,
        };
        let what = match (named.digest, named.statement) {
            (Some(text), None) => {
                WatchedStatement::Digest(text.parse().map_err(|why| format!("{text}: {why}"))?)
            }
            (None, Some(path)) => WatchedStatement::File(reader.path(path)),
            _ => return Err("an entry is named by one of digest and statement".into()),
        };
        match named.id {
            Some(id) if !is_path_segment(&id) => Err(format!("{id:?} is not a name in a URL")),
            id => Ok(WatchedEntry { id, what }),
        }
    }
}

/// Returns `true` if the ID can be part of a URL path without escaping.
fn is_path_segment(id: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
    (1..=128).contains(&id.len()) && id.chars().all(fits) && !id.chars().all(|c| c == '.')
}
