//! Reading the entries at given leaves.

use std::collections::VecDeque;

use merkle::LeafIndex;
use store::{Entry, LogReader, StoreError};

use crate::limits::{ENTRIES_BYTES, ENTRIES_FIRST, ENTRIES_MOST};

/// A reader of the entries at given leaves. It reads so many at one time that few large statements are in memory together.
pub struct EntryReader<'a> {
    store: &'a dyn LogReader,
    leaves: &'a [LeafIndex],
    chunk: usize,
    read: VecDeque<Entry>,
}

impl<'a> EntryReader<'a> {
    /// Creates a reader of the entries at these leaves.
    pub fn of(store: &'a dyn LogReader, leaves: &'a [LeafIndex]) -> Self {
        Self { store, leaves, chunk: ENTRIES_FIRST, read: VecDeque::new() }
    }

    /// Returns the next entry, in the order of the leaves; `None` after the last one. Those at or beyond the committed size are
    /// left out.
    pub async fn next(&mut self) -> Result<Option<Entry>, StoreError> {
        while self.read.is_empty() && !self.leaves.is_empty() {
            let (leaves, rest) = self.leaves.split_at(self.chunk.min(self.leaves.len()));
            let entries = self.store.entries_at(leaves).await?;
            (self.leaves, self.chunk) = (rest, next_chunk(&entries));
            self.read = entries.into();
        }
        Ok(self.read.pop_front())
    }

    /// Returns the number of entries that were not returned yet.
    pub fn left(&self) -> usize {
        self.leaves.len() + self.read.len()
    }
}

/// Returns how many entries may be read at one time, if they are as large as these.
pub fn next_chunk(entries: &[Entry]) -> usize {
    let bytes: usize = entries.iter().map(statement_bytes).sum();
    (ENTRIES_BYTES * entries.len() / bytes.max(1)).clamp(1, ENTRIES_MOST)
}

/// Returns the number of bytes of an entry's statement.
pub fn statement_bytes(entry: &Entry) -> usize {
    entry.statement.as_ref().map_or(0, bytes::Bytes::len)
}
