//! The lookup index: from what an entry says to the entry.
//!
//! It is derived: read from the entries, behind them by a little, and never part of a commit. It
//! can be dropped and read again while it serves, and says up to which size it was read.
//!
//! Not here: what is read from an entry (`registration`), and who reads (the service).

mod search;

use std::borrow::Cow;
use std::ops::Range;

use async_trait::async_trait;
use merkle::{EntryDigest, LeafIndex, TreeSize};

use crate::StoreError;
pub use search::{Rows, search};

/// A longer value is indexed by its hash: found when asked for whole, not by its beginning.
pub const VALUE_BYTES: usize = 512;
/// How many values one term may offer.
pub const VALUES_PER_TERM: usize = 64;
/// How many terms one query may have.
pub const TERMS: usize = 16;

/// The index over one log.
#[async_trait]
pub trait LookupIndex: Send + Sync + 'static {
    /// How far the index was read.
    async fn indexed(&self) -> Result<Indexed, StoreError>;

    /// Replaces what the index says of the entries `from.to..to`, and moves it to `to`, in one
    /// transaction; answers `false`, and does nothing, when the index is no longer at `from`.
    ///
    /// Rows of erased entries are left out, whatever raced. A row of another entry, and a size
    /// that was never committed, are [`StoreError::Refused`].
    async fn index(&self, from: Indexed, to: TreeSize, rows: &[Lookup]) -> Result<bool, StoreError>;

    /// Starts the index again at nothing, in a form; what it had is seen by nobody any more.
    async fn drop_index(&self, form: u32) -> Result<(), StoreError>;

    /// The entries of which every term of a query is true, in its order.
    async fn search(&self, query: &Query) -> Result<Page, StoreError>;

    /// Up to `limit` values of a kind that begin with `prefix`, in the order of their bytes. After
    /// a drop it may offer what is not indexed again yet.
    async fn values(&self, kind: u8, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError>;

    /// All rows of these entries, by entry, kind and value; of those not indexed yet, none.
    async fn lookups(&self, entries: &[LeafIndex]) -> Result<Vec<Lookup>, StoreError>;
}

/// How far an index was read, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The form of the rows: whoever writes another one drops the index. 0: nothing was indexed yet.
    pub form: u32,
    /// Every entry of this tree is in the index.
    pub to: TreeSize,
}

impl Default for Indexed {
    fn default() -> Self {
        Self { form: 0, to: TreeSize::new(0) }
    }
}

/// One row: an entry says this.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lookup {
    /// What kind of thing it says; the numbers are the caller's.
    pub kind: u8,
    /// What it says.
    pub value: String,
    /// The entry.
    pub entry: LeafIndex,
}

/// True of an entry that says one of these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The kind of thing.
    pub kind: u8,
    /// Any of these.
    pub values: Vec<String>,
}

impl Term {
    /// One value.
    pub fn exactly(kind: u8, value: impl Into<String>) -> Self {
        Self { kind, values: vec![value.into()] }
    }
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// All of these; none at all is true of every entry.
    pub terms: Vec<Term>,
    /// Only entries in this range.
    pub within: Range<u64>,
    /// In this order.
    pub order: Order,
    /// At most so many.
    pub limit: usize,
}

/// The order of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first entry on.
    OldestFirst,
    /// From the last entry back.
    NewestFirst,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries, in the order asked for.
    pub entries: Vec<LeafIndex>,
    /// The entry behind which there may be more. A search that looked at many entries in vain
    /// stops with fewer than the limit, so only `None` says that this is all.
    pub more_after: Option<LeafIndex>,
    /// How far the index was when it was asked.
    pub indexed: Indexed,
}

/// A value as it is stored: itself, or its hash where a database could not index it.
pub fn stored_value(value: &str) -> Cow<'_, str> {
    const HASHED: char = '\u{1}';
    if value.len() <= VALUE_BYTES && !value.contains('\0') && !value.starts_with(HASHED) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{HASHED}sha256:{}", EntryDigest::of(value.as_bytes())))
}

/// Refuses rows that a store would not be asked to keep.
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
