//! Heads of the index among the entries of a log.

use audit::EntryEvidence;
use lookup_tree::{HEAD_CONTENT_TYPE, IndexHead};
use merkle::LeafIndex;
use scitt::SignedStatement;

/// A head of the index with its statement.
pub struct HeadEntry {
    /// The leaf of the statement.
    pub leaf: LeafIndex,
    /// Leaf of the policy that admitted it.
    pub policy: LeafIndex,
    /// The statement.
    pub statement: SignedStatement,
    /// The payload.
    pub head: IndexHead,
}

impl HeadEntry {
    /// Reads a head; `None` if the entry is another statement.
    pub fn read(row: &EntryEvidence) -> Option<Self> {
        let statement = SignedStatement::parse(row.statement.clone()?).ok()?;
        let named = statement.header().content_type().and_then(|name| name.as_text());
        let payload = statement.payload().filter(|_| named == Some(HEAD_CONTENT_TYPE))?;
        let head = IndexHead::decode(payload).ok()?;
        Some(Self { leaf: row.index, policy: row.policy, statement, head })
    }
}
