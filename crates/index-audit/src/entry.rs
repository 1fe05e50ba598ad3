//! An entry as the index sees it: its keys, and the entries that it erases.

use std::collections::BTreeSet;

use lookup_tree::{BlindCode, TermKey};
use merkle::{EntryDigest, LeafHash};
use registration::policy::essence;
use registration::{ERASURE_CONTENT_TYPE, Record, SearchValues};
use scitt::SignedStatement;

/// An entry of a log, for its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedEntry {
    /// Hash of the leaf.
    pub leaf: LeafHash,
    /// The keys of the entry's terms and of its blind codes; `None` if the log does not serve the statement (any more).
    pub keys: Option<BTreeSet<TermKey>>,
    /// The entries whose bytes the statement erases.
    pub erases: Vec<EntryDigest>,
}

impl IndexedEntry {
    /// An entry whose statement is not served.
    pub fn gone(leaf: LeafHash) -> Self {
        Self { leaf, keys: None, erases: Vec::new() }
    }

    /// Reads an entry from the bytes of its statement and its detached payload, as far as the log serves them. Bytes that
    /// are not a statement are an entry that cannot be read.
    pub fn read(digest: EntryDigest, statement: Option<&[u8]>, payload: Option<&[u8]>) -> Self {
        let leaf = digest.leaf_hash();
        let Some(bytes) = statement else { return Self::gone(leaf) };
        match SignedStatement::parse(bytes.to_vec()) {
            Ok(statement) => {
                let keys = Some(SearchValues::of_statement(&statement, payload).keys());
                Self { leaf, keys, erases: erased_entries(&statement) }
            }
            Err(_) => {
                let keys = Some(SearchValues::blind(BlindCode::Unreadable).keys());
                Self { leaf, keys, erases: Vec::new() }
            }
        }
    }
}

/// The entries that an erasure statement names; none for other statements.
fn erased_entries(statement: &SignedStatement) -> Vec<EntryDigest> {
    let named = statement.header().content_type().and_then(|name| name.as_text()).unwrap_or_default();
    let payload = statement.payload().filter(|_| essence(named) == ERASURE_CONTENT_TYPE);
    match payload.map(|payload| Record::of(statement.header(), payload)) {
        Some(Ok(Record::Erasure(erasure))) => erasure.entries,
        _ => Vec::new(),
    }
}
