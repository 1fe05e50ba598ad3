//! The committed heads that first covered leaves.

use merkle::LeafIndex;
use store::{CommittedHead, LogReader, StoreError};

use crate::limits::HEADS_CHUNK;

/// A reader of the heads that first covered leaves, for leaves in ascending order.
pub struct Heads<'a> {
    store: &'a dyn LogReader,
    /// Consecutive heads, from the one that first covered the last leaf on.
    read: Vec<CommittedHead>,
}

impl<'a> Heads<'a> {
    /// Creates a reader of a store's heads.
    pub fn of(store: &'a dyn LogReader) -> Self {
        Self { store, read: Vec::new() }
    }

    /// Finds the first committed head that covers a leaf. No call may name a lower leaf than the one before.
    pub async fn first_with(&mut self, leaf: LeafIndex) -> Result<Option<CommittedHead>, StoreError> {
        if self.found(leaf).is_none() {
            self.read = match self.read.last().filter(|last| last.size.get() == leaf.get()) {
                // The next leaf: those after it will probably be needed too.
                Some(last) => self.store.heads(last.batch + 1, HEADS_CHUNK).await?,
                None => self.store.head_covering(leaf).await?.into_iter().collect(),
            };
        }
        Ok(self.found(leaf))
    }

    fn found(&self, leaf: LeafIndex) -> Option<CommittedHead> {
        self.read.iter().find(|head| head.size.holds(leaf)).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::Memory;
    use store::contract::Appender;

    use super::*;

    #[tokio::test]
    async fn the_head_that_brought_a_leaf_is_found_near_the_last_one_and_far_from_it() {
        let store = Arc::new(Memory::new());
        let mut log = Appender::new(store.clone()).await;
        for _ in 0..3 * HEADS_CHUNK {
            log.append(2).await;
        }
        let mut heads = Heads::of(&*store);
        let far = 4 * HEADS_CHUNK as u64;
        for leaf in [1, 2, 2, 3, 100, far, far + 1, far + 100] {
            let head = heads.first_with(LeafIndex::new(leaf)).await.unwrap().unwrap();
            assert_eq!((head.batch, head.size.get()), (leaf / 2 + 1, leaf / 2 * 2 + 2), "of leaf {leaf}");
        }
        assert!(heads.first_with(LeafIndex::new(u64::MAX)).await.unwrap().is_none());
    }
}
