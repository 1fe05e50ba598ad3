//! The lookup index: finds entries by what their statements contain.
//!
//! The index is derived data: rows are read from committed entries, a little later than the commit and never in
//! its transaction. It can be dropped and rebuilt while it serves, and [`Indexed`] names the size up to which it
//! is complete.
//!
//! Not here: which values are read from an entry (`registration`), and the task that reads them (the service).

mod search;

use std::borrow::Cow;
use std::ops::Range;

use async_trait::async_trait;
use merkle::{EntryDigest, LeafIndex, TreeSize};

use crate::StoreError;
pub use search::{Rows, search};

/// Maximum length of a value that is indexed as it is, in bytes. A longer one is indexed by its hash: it is found
/// when the whole value is searched for, not by its prefix.
pub const VALUE_BYTES: usize = 512;
/// Maximum number of values in one [`Term`].
pub const VALUES_PER_TERM: usize = 64;
/// Maximum number of terms in one [`Query`].
pub const TERMS: usize = 16;

/// Lookup index over one log.
#[async_trait]
pub trait LookupIndex: Send + Sync + 'static {
    /// Reads how far the index goes, and its form.
    async fn indexed(&self) -> Result<Indexed, StoreError>;

    /// Replaces the rows of the entries `from.to..to` and moves the index to `to`, in one transaction; returns
    /// `false`, and changes nothing, if the index is no longer at `from`.
    ///
    /// Rows of erased entries are left out, also if the erasure happens concurrently. A row of another entry, and
    /// a size that was never committed, are [`StoreError::Refused`].
    async fn index(&self, from: Indexed, to: TreeSize, rows: &[Lookup]) -> Result<bool, StoreError>;

    /// Restarts the index at size 0 in the given form; the old rows are no longer found.
    async fn drop_index(&self, form: u32) -> Result<(), StoreError>;

    /// Finds the entries that match every term of a query, in the query's order.
    async fn search(&self, query: &Query) -> Result<Page, StoreError>;

    /// Lists up to `limit` values of a kind that begin with `prefix`, in byte order: those greater than `after`
    /// if it is given. After [`drop_index`](Self::drop_index) the list may still hold values that are not indexed
    /// again yet.
    async fn values(
        &self,
        kind: u8,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Reads all rows of these entries, by entry, kind and value; entries that are not indexed yet have none.
    async fn lookups(&self, entries: &[LeafIndex]) -> Result<Vec<Lookup>, StoreError>;
}

/// Extent and form of a lookup index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Form (version) of the rows; a writer of another form drops the index first. 0: nothing was indexed yet.
    pub form: u32,
    /// Size of the tree whose entries are all in the index.
    pub to: TreeSize,
}

impl Default for Indexed {
    fn default() -> Self {
        Self { form: 0, to: TreeSize::new(0) }
    }
}

/// Row of the index: one value that an entry has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lookup {
    /// Kind of the value; the caller assigns the numbers.
    pub kind: u8,
    /// The value, as read from the entry.
    pub value: String,
    /// Index of the entry.
    pub entry: LeafIndex,
}

/// Condition that an entry has at least one of these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Kind of the values.
    pub kind: u8,
    /// Alternatives, at most [`VALUES_PER_TERM`].
    pub values: Vec<String>,
}

impl Term {
    /// Makes a term with one value.
    pub fn exactly(kind: u8, value: impl Into<String>) -> Self {
        Self { kind, values: vec![value.into()] }
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
    /// The entries, in the order asked for.
    pub entries: Vec<LeafIndex>,
    /// Entry after which the search can continue. A search that looked at many entries in vain stops with fewer
    /// than the limit, so only `None` means that the result is complete.
    pub more_after: Option<LeafIndex>,
    /// Extent of the index at the time of the search.
    pub indexed: Indexed,
}

/// Returns a value in its stored form: unchanged, or its hash if it is longer than [`VALUE_BYTES`] or holds bytes
/// that a database cannot index.
pub fn stored_value(value: &str) -> Cow<'_, str> {
    const HASHED: char = '\u{1}';
    if value.len() <= VALUE_BYTES && !value.contains('\0') && !value.starts_with(HASHED) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{HASHED}sha256:{}", EntryDigest::of(value.as_bytes())))
}

/// Checks rows for [`LookupIndex::index`]: each entry within `from.to..to`, and the range not reversed.
pub fn check_rows(from: Indexed, to: TreeSize, rows: &[Lookup]) -> Result<(), StoreError> {
    let within = from.to.get()..to.get();
    if to < from.to {
        return Err(StoreError::Refused("an index is not moved back: it is dropped".into()));
    }
    match rows.iter().find(|row| !within.contains(&row.entry.get())) {
        Some(row) => Err(StoreError::Refused(format!("entry {} is not among those indexed", row.entry))),
        None => Ok(()),
    }
}
