//! SCITT services in the configuration file, and the files that they refer to.
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

use scitt::SignedStatement;
use serde::Deserialize;
use url::Url;
use verifier::TrustStore;
use verifier::trust::MAX_TRUST_BYTES;

use super::{BadService, ServiceTarget, Watched, WatchedEntry};
use crate::limits::MAX_LISTED;

/// A `[[service]]` table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub name: String,
    pub url: String,
    pub trust: PathBuf,
    pub ca_file: Option<PathBuf>,
    pub unreachable_after: Option<String>,
    pub lag: Option<String>,
    #[serde(default)]
    pub entries: Vec<EntryText>,
}

/// An entry in the configuration: a digest, or a table.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum EntryText {
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

impl Service {
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

impl EntryText {
    fn read(self, folder: &Path) -> Result<WatchedEntry, String> {
        let named = match self {
            Self::Digest(digest) => NamedEntry { id: None, digest: Some(digest), statement: None },
            Self::Named(named) => named,
        };
        let what = match (named.digest, named.statement) {
            (Some(text), None) => Watched::Digest(text.parse().map_err(|why| format!("{text}: {why}"))?),
            (None, Some(path)) => Watched::File(folder.join(path)),
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

pub fn trust(path: &Path) -> Result<TrustStore, BadService> {
    let bad = |why: String| BadService::File { path: path.to_owned(), why };
    let text = String::from_utf8(read(path)?).map_err(|why| bad(why.to_string()))?;
    let trust = TrustStore::from_toml(&text).map_err(|why| bad(why.to_string()))?;
    match trust.logs.is_empty() {
        true => Err(bad("no log is trusted in it: no receipt could be verified".into())),
        false => Ok(trust),
    }
}

pub fn statement(path: &Path) -> Result<SignedStatement, BadService> {
    SignedStatement::parse(read(path)?)
        .map_err(|why| BadService::File { path: path.to_owned(), why: why.to_string() })
}

pub fn read(path: &Path) -> Result<Vec<u8>, BadService> {
    let most = (MAX_TRUST_BYTES.max(scitt::limits::STATEMENT_BYTES)) as u64;
    let bad = |why: String| BadService::File { path: path.to_owned(), why };
    let bytes = durable::read(path, most).map_err(|why| bad(why.to_string()))?;
    bytes.ok_or_else(|| bad("there is no such file".into()))
}
