//! The search terms of entries that this process registered, from the decision to the index, so that the index need not
//! read and parse the entries again.
//!
//! What is missing here (an entry of another process, or of the inbox) is read from the store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use merkle::LeafIndex;
use store::lookup::EntryTerms;

use crate::limits::DECIDED_TERMS;

/// Terms by leaf, at most [`DECIDED_TERMS`].
#[derive(Default)]
pub struct DecidedTerms(Mutex<BTreeMap<LeafIndex, EntryTerms>>);

impl DecidedTerms {
    /// Keeps the terms of a committed entry. If there are too many, they are left to be read from the store.
    pub fn put(&self, leaf: LeafIndex, terms: EntryTerms) {
        let mut decided = self.decided();
        if decided.len() < DECIDED_TERMS {
            decided.insert(leaf, terms);
        }
    }

    /// Takes the terms of up to `limit` successive entries from `from` on, as far as they are known, and forgets those
    /// of earlier ones.
    pub fn take(&self, from: LeafIndex, limit: usize) -> Vec<EntryTerms> {
        let mut decided = self.decided();
        *decided = decided.split_off(&from);
        let mut taken = Vec::new();
        for leaf in (from.get()..).take(limit).map(LeafIndex::new) {
            let Some(terms) = decided.remove(&leaf) else { break };
            taken.push(terms);
        }
        taken
    }

    /// The first entry whose terms are known.
    pub fn first(&self) -> Option<LeafIndex> {
        self.decided().keys().next().copied()
    }

    fn decided(&self) -> MutexGuard<'_, BTreeMap<LeafIndex, EntryTerms>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successive_entries_are_taken_and_earlier_ones_forgotten() {
        let decided = DecidedTerms::default();
        for leaf in [3, 5, 6, 8] {
            decided.put(LeafIndex::new(leaf), EntryTerms::default());
        }
        assert!(decided.take(LeafIndex::new(4), 9).is_empty());
        assert_eq!(decided.first(), Some(LeafIndex::new(5)));
        assert_eq!(decided.take(LeafIndex::new(5), 9).len(), 2);
        assert_eq!(decided.first(), Some(LeafIndex::new(8)));
    }
}
