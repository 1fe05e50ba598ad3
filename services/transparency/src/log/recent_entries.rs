//! The entries that were registered last, by digest.
//!
//! A client that repeats a registration, because it lost the answer, mostly does so soon. It then gets a receipt without
//! another check of the signature and without the database. Only committed entries are listed, and an entry keeps its
//! leaf for ever, so the list needs no invalidation.
//!
//! Not here: older entries, which the sequencer looks up with each batch.

use merkle::{EntryDigest, LeafIndex};
use moka::sync::Cache;

use crate::limits::RECENT_ENTRIES;

/// The leaves of the last [`RECENT_ENTRIES`] entries that this process registered or found.
pub struct RecentEntries(Cache<EntryDigest, LeafIndex>);

impl Default for RecentEntries {
    fn default() -> Self {
        Self(Cache::new(RECENT_ENTRIES))
    }
}

impl RecentEntries {
    /// The leaf of an entry, if it is listed.
    pub fn leaf(&self, digest: EntryDigest) -> Option<LeafIndex> {
        self.0.get(&digest)
    }

    /// Lists a committed entry.
    pub fn insert(&self, digest: EntryDigest, leaf: LeafIndex) {
        self.0.insert(digest, leaf);
    }
}
