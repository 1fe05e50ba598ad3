//! The leaves of entries that were registered or found a short time ago, by digest.
//!
//! A client that repeats a registration, because it lost the answer, mostly does so soon. It then gets a receipt without
//! another check of the signature and without the database. Only committed entries are kept, and an entry keeps its
//! leaf for ever, so the cache needs no invalidation. It removes entries by how often and how recently they were used; a
//! removed one is looked up as an older one is.
//!
//! Not here: older entries, which the sequencer looks up with each batch.

use merkle::{EntryDigest, LeafIndex};
use moka::sync::Cache;

use crate::limits::RECENT_ENTRIES;

/// The leaves of at most [`RECENT_ENTRIES`] entries that this process registered or found.
pub struct RecentEntries(Cache<EntryDigest, LeafIndex>);

impl Default for RecentEntries {
    fn default() -> Self {
        Self(Cache::new(RECENT_ENTRIES))
    }
}

impl RecentEntries {
    /// The leaf of an entry, if it is in the cache.
    pub fn leaf(&self, digest: EntryDigest) -> Option<LeafIndex> {
        self.0.get(&digest)
    }

    /// Adds a committed entry.
    pub fn insert(&self, digest: EntryDigest, leaf: LeafIndex) {
        self.0.insert(digest, leaf);
    }
}
