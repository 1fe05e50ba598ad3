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

use std::path::{Path, PathBuf};
use std::time::Duration;

use merkle::EntryDigest;
use serde::Deserialize;
use url::Url;

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
    pub name: String,
    pub url: String,
    pub trust: PathBuf,
    pub ca_file: Option<PathBuf>,
    pub unreachable_after: Option<String>,
    pub lag: Option<String>,
    #[serde(default)]
    pub entries: Vec<EntryTable>,
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
    /// Converts the table to a target; the caller has checked `url` and the name.
    pub fn read(self, folder: &Path, url: Url) -> Result<ServiceTarget, String> {
        if !(1..=MAX_LISTED).contains(&self.entries.len()) {
            return Err(format!("1 to {MAX_LISTED} entries are watched, not {}", self.entries.len()));
        }
        let entries = self.entries.into_iter().map(|entry| entry.read(folder)).collect::<Result<_, _>>()?;
        let target = ServiceTarget::new(&self.name, url, folder.join(self.trust));
        Ok(ServiceTarget { ca_file: self.ca_file.map(|path| folder.join(path)), entries, ..target })
    }
}

impl EntryTable {
    fn read(self, folder: &Path) -> Result<WatchedEntry, String> {
        let named = match self {
            Self::Digest(digest) => NamedEntry { id: None, digest: Some(digest), statement: None },
            Self::Named(named) => named,
        };
        let what = match (named.digest, named.statement) {
            (Some(text), None) => {
                WatchedStatement::Digest(text.parse().map_err(|why| format!("{text}: {why}"))?)
            }
            (None, Some(path)) => WatchedStatement::File(folder.join(path)),
            _ => return Err("an entry is named by one of digest and statement".into()),
        };
        match named.id {
            Some(id) if !is_path_segment(&id) => Err(format!("{id:?} is no name in a URL")),
            id => Ok(WatchedEntry { id, what }),
        }
    }
}

/// Returns `true` if the ID can be part of a URL path without escaping.
fn is_path_segment(id: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
    (1..=128).contains(&id.len()) && id.chars().all(fits) && !id.chars().all(|c| c == '.')
}
