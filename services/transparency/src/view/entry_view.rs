//! An entry as JSON.

use serde::Serialize;
use store::Entry;
use utoipa::ToSchema;

use crate::time::rfc3339;

/// An entry of the log.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryView {
    /// SHA-256 of the statement, hex.
    entry_id: String,
    /// The leaf.
    index: u64,
    /// The issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<String>,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<String>,
    /// Of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// Everything that was read from the statement when it was admitted.
    #[schema(value_type = Object)]
    facts: serde_json::Value,
    /// The policy entry that admitted it.
    policy: u64,
    /// The rule of that policy.
    rule: String,
    /// Bytes of the statement; absent once erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<usize>,
    /// Whether the statement was erased.
    erased: bool,
    /// The time of the commit, which was the receipt's iat. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

impl EntryView {
    /// The entry's leaf.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Returns the issuer.
    pub fn iss(&self) -> Option<&str> {
        self.iss.as_deref()
    }

    /// Returns the subject.
    pub fn sub(&self) -> Option<&str> {
        self.sub.as_deref()
    }

    /// Returns the content type of the payload.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// Sets the commit time, in Unix seconds.
    pub fn committed_at(&mut self, at: Option<u64>) {
        self.at = at.and_then(rfc3339);
    }

    /// Creates the view of an entry; `at` is its commit time in Unix seconds, if known.
    pub fn of(entry: &Entry, at: Option<u64>) -> Self {
        let facts: serde_json::Value = serde_json::from_str(&entry.facts).unwrap_or_default();
        let text = |name: &str| facts.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        Self {
            entry_id: entry.digest.to_string(),
            index: entry.index.get(),
            iss: text("iss"),
            sub: text("sub"),
            content_type: text("content_type"),
            policy: entry.policy.get(),
            rule: entry.rule.clone(),
            size: entry.statement.as_ref().map(bytes::Bytes::len),
            erased: entry.statement.is_none(),
            at: at.and_then(rfc3339),
            facts,
        }
    }
}
