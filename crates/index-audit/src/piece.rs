//! A piece: the postings of the entries in one run of level 0, and the leaves of the tree.

use std::collections::BTreeSet;

use lookup_tree::limits::LEVEL_0_LEAVES;
use lookup_tree::{BlindCode, Posting, TermKey};
use merkle::{CompactRange, LeafHash, LeafIndex, RootHash, TreeSize};

/// Up to 4,096 entries, as the index sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The tree before the first leaf; its size is a multiple of 4,096.
    pub(crate) before: CompactRange,
    pub(crate) leaves: Vec<LeafHash>,
    pub(crate) postings: BTreeSet<Posting>,
}

impl Piece {
    /// The empty piece after this tree.
    pub(crate) fn after(before: CompactRange) -> Self {
        Self { before, leaves: Vec::new(), postings: BTreeSet::new() }
    }

    /// The number of the piece, and of its run of level 0.
    pub(crate) fn number(&self) -> u64 {
        piece_of(self.start())
    }

    pub(crate) fn start(&self) -> LeafIndex {
        self.before.size().next_leaf()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.leaves.len() as u64 == LEVEL_0_LEAVES
    }

    /// Adds the next entry.
    pub(crate) fn push(&mut self, leaf: LeafHash, keys: impl IntoIterator<Item = TermKey>) {
        let at = LeafIndex::new(self.start().get() + self.leaves.len() as u64);
        self.postings.extend(keys.into_iter().map(|key| Posting { key, leaf: at }));
        self.leaves.push(leaf);
    }

    /// Removes the leaves from `end` on.
    pub(crate) fn truncate(&mut self, end: LeafIndex) {
        let kept = end.get().saturating_sub(self.start().get());
        self.leaves.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.postings.retain(|posting| posting.leaf < end);
    }

    /// Replaces the postings of erased leaves with their blind posting.
    pub(crate) fn erase(&mut self, erased: &BTreeSet<LeafIndex>) {
        self.postings.retain(|posting| !erased.contains(&posting.leaf));
        self.postings.extend(erased.iter().map(|leaf| Posting::blind(BlindCode::Erased, *leaf)));
    }

    /// The tree after the last leaf.
    pub(crate) fn tree(&self) -> CompactRange {
        self.tree_of(self.leaves.len())
    }

    /// The root of the log at a size within the piece; `None` beyond it.
    pub(crate) fn root_at(&self, size: TreeSize) -> Option<RootHash> {
        let count = size.get().checked_sub(self.start().get())?;
        let count = usize::try_from(count).ok().filter(|count| *count <= self.leaves.len())?;
        Some(self.tree_of(count).root())
    }

    fn tree_of(&self, count: usize) -> CompactRange {
        let mut tree = self.before.clone();
        self.leaves.iter().take(count).for_each(|leaf| tree.append(*leaf));
        tree
    }
}

/// The number of the piece that has a leaf.
pub(crate) fn piece_of(leaf: LeafIndex) -> u64 {
    leaf.get() / LEVEL_0_LEAVES
}
