//! Queries of the lookup index, and their results.

use std::ops::Range;

use lookup_tree::TermKey;
use merkle::{LeafIndex, TreeSize};

/// Maximum number of values in one [`Term`].
pub const VALUES_PER_TERM: usize = 64;
/// Maximum number of terms in one [`Query`].
pub const TERMS: usize = 16;

/// Extent and form of a lookup index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Form (version) of the terms; a writer of another form drops the index first. 0: nothing was indexed yet.
    pub form: u32,
    /// Size of the tree whose entries are all in the index.
    pub to: TreeSize,
}

/// Condition that an entry has at least one of these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Kind of the values; the caller assigns the numbers.
    pub kind: u8,
    /// Alternatives, at most [`VALUES_PER_TERM`].
    pub values: Vec<String>,
}

impl Term {
    /// Makes a term with one value.
    pub fn exactly(kind: u8, value: impl Into<String>) -> Self {
        Self { kind, values: vec![value.into()] }
    }

    /// The key of each value, each once.
    pub(super) fn keys(&self) -> Vec<TermKey> {
        let mut keys: Vec<TermKey> =
            self.values.iter().map(|value| TermKey::of(self.kind, value.as_bytes())).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Search for entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Conditions that must all hold, at most [`TERMS`]. Without any, every entry matches.
    pub terms: Vec<Term>,
    /// Range of entry indices to search.
    pub within: Range<u64>,
    /// Order of the result.
    pub order: Order,
    /// Maximum number of entries in the result.
    pub limit: usize,
}

/// Order of a search result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending entry index.
    OldestFirst,
    /// Descending entry index.
    NewestFirst,
}

/// Result of a [`Query`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries, in the order of the query.
    pub entries: Vec<LeafIndex>,
    /// Entry after which the search can continue. A search that looked at many entries in vain stops with fewer
    /// than the limit, so only `None` means that the result is complete.
    pub more_after: Option<LeafIndex>,
    /// Extent of the index at the time of the search.
    pub indexed: Indexed,
}

impl Page {
    /// The leaves that the search of this query looked at.
    pub fn leaves(&self, query: &Query) -> Range<u64> {
        let Range { start, end } = query.within.start..query.within.end.min(self.indexed.to.get());
        match (query.order, self.more_after) {
            (_, None) => start..end,
            (Order::OldestFirst, Some(last)) => start..last.get() + 1,
            (Order::NewestFirst, Some(last)) => last.get()..end,
        }
    }
}
