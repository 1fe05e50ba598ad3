//! An entry as JSON.

use serde::Serialize;
use store::{CommittedHead, Entry};
use utoipa::ToSchema;

use super::entry_facts::facts_of;
use crate::run_blocking::run_blocking;
use crate::time::rfc3339;

/// An entry of the log.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryView {
    /// SHA-256 of the statement, hex.
    pub entry_id: String,
    /// The leaf.
    pub index: u64,
    /// The issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// Of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Values in the statement, and results of its admission.
    #[schema(value_type = Object)]
    pub facts: serde_json::Value,
    /// The policy entry that admitted it.
    pub policy: u64,
    /// The rule of that policy.
    pub rule: String,
    /// Bytes of the statement; absent once erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Whether the statement was erased.
    pub erased: bool,
    /// The time of the commit, which was the receipt's iat. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Leaves of the tree that its batch made. Receipts of larger trees have later times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree_size_committed: Option<u64>,
}

impl EntryView {
    /// Sets time and tree size of the commit: those of the head of the entry's batch.
    pub fn committed_with(&mut self, head: Option<CommittedHead>) {
        self.at = head.and_then(|head| rfc3339(head.at));
        self.tree_size_committed = head.map(|head| head.size.get());
    }

    /// Creates the view of an entry, without its commit.
    pub fn of(entry: &Entry) -> Self {
        let size = entry.statement.as_ref().map(bytes::Bytes::len);
        let facts = run_blocking(size.unwrap_or(0), || facts_of(entry));
        let text = |name: &str| facts.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        Self {
            entry_id: entry.digest.to_string(),
            index: entry.index.get(),
            iss: text("iss"),
            sub: text("sub"),
            content_type: text("content_type"),
            policy: entry.policy.get(),
            rule: entry.rule.clone(),
            size,
            erased: entry.statement.is_none(),
            at: None,
            tree_size_committed: None,
            facts: facts.into(),
        }
    }
}
