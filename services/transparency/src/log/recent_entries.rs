//! The leaves of entries that were registered or found a short time ago, by digest.
//!
//! A client that repeats a registration, because it lost the answer, mostly does so soon. It then gets a receipt without
//! another check of the signature and without the database. Only committed entries are kept, and an entry keeps its
//! leaf for ever, so nothing becomes invalid. The oldest ones are forgotten, and looked up as any older entry is.
//!
//! Not here: older entries, which the sequencer looks up with each batch.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use merkle::{EntryDigest, LeafIndex};

use crate::limits::RECENT_ENTRIES;

/// The leaves of at most [`RECENT_ENTRIES`] entries that this process registered or found.
#[derive(Default)]
pub struct RecentEntries(Mutex<Generations>);

/// Two maps, of which the older one is emptied at once when the newer one is full: to forget single entries would need
/// their order.
#[derive(Default)]
struct Generations {
    newer: HashMap<EntryDigest, LeafIndex>,
    older: HashMap<EntryDigest, LeafIndex>,
}

impl RecentEntries {
    /// The leaf of an entry, if it is recent.
    pub fn leaf(&self, digest: EntryDigest) -> Option<LeafIndex> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Generations { newer, older } = &*generations;
        newer.get(&digest).or_else(|| older.get(&digest)).copied()
    }

    /// Adds a committed entry.
    pub fn insert(&self, digest: EntryDigest, leaf: LeafIndex) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.newer.len() >= RECENT_ENTRIES / 2 {
            generations.begin_another();
        }
        generations.newer.insert(digest, leaf);
    }
}

impl Generations {
    fn begin_another(&mut self) {
        self.older.clear();
        std::mem::swap(&mut self.newer, &mut self.older);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> EntryDigest {
        EntryDigest::of(&number.to_be_bytes())
    }

    #[test]
    fn the_newest_half_is_always_known_and_the_oldest_entries_are_forgotten() {
        let recent = RecentEntries::default();
        let all = RECENT_ENTRIES + RECENT_ENTRIES / 4;
        for number in 0..all {
            recent.insert(digest(number), LeafIndex::new(number as u64));
        }
        for number in (all - RECENT_ENTRIES / 2..all).step_by(997) {
            assert_eq!(recent.leaf(digest(number)), Some(LeafIndex::new(number as u64)));
        }
        assert_eq!(recent.leaf(digest(0)), None);
    }
}
