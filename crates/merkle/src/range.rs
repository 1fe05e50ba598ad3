//! The right edge of a tree: all that is needed to append to it and to know its root.

use crate::{Growth, Hash, LeafHash, RootHash, TreeSize, empty_root, hash_children};

/// The largest size a range is restored at, so that no growth can overflow.
pub const MAX_TREE_SIZE: TreeSize = TreeSize::new(1 << 62);

/// The hashes given do not describe a tree of the size given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRange {
    /// A tree of this size has another number of perfect subtrees.
    #[error("a tree of size {size} has {} perfect subtrees, not {given}", size.get().count_ones())]
    Count {
        /// The size given.
        size: TreeSize,
        /// The number of hashes given.
        given: usize,
    },
    /// No log gets so large.
    #[error("{0} leaves are more than a tree can have")]
    TooLarge(TreeSize),
}

/// The roots of the perfect subtrees of a tree: one for each bit that is set in its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactRange {
    size: TreeSize,
    hashes: Vec<Hash>,
}

impl CompactRange {
    /// The tree without leaves.
    pub const fn empty() -> Self {
        Self { size: TreeSize::EMPTY, hashes: Vec::new() }
    }

    /// Restores what [`size`](Self::size) and [`hashes`](Self::hashes) gave. That the hashes are
    /// those of the tree cannot be checked here: compare [`root`](Self::root) with a root you trust.
    pub fn from_parts(size: TreeSize, hashes: Vec<Hash>) -> Result<Self, BadRange> {
        if size > MAX_TREE_SIZE {
            return Err(BadRange::TooLarge(size));
        }
        if hashes.len() != size.get().count_ones() as usize {
            return Err(BadRange::Count { size, given: hashes.len() });
        }
        Ok(Self { size, hashes })
    }

    /// How many leaves the tree has.
    pub const fn size(&self) -> TreeSize {
        self.size
    }

    /// The roots of the perfect subtrees, largest first.
    pub fn hashes(&self) -> &[Hash] {
        &self.hashes
    }

    /// The root of the tree.
    pub fn root(&self) -> RootHash {
        root_of_subtrees(&self.hashes).map_or_else(empty_root, Hash::into_root)
    }

    /// Appends one leaf.
    pub fn append(&mut self, leaf: LeafHash) {
        let mut node = Hash::from(leaf);
        let completed = self.size.get().trailing_ones() as usize;
        let waiting = self.hashes.len() - completed;
        for left in self.hashes.drain(waiting..).rev() {
            node = hash_children(left, node);
        }
        self.hashes.push(node);
        self.size = TreeSize::new(self.size.get() + 1);
    }

    /// Appends a batch and keeps what is needed for the paths of its leaves. The range itself
    /// stays as it was, so that a commit that fails costs nothing.
    pub fn grow(&self, leaves: &[LeafHash]) -> Growth {
        Growth::new(self, leaves)
    }

    /// The root of the perfect subtree of 2^`level` leaves, if the size has that bit.
    pub(crate) fn at_level(&self, level: u32) -> Option<Hash> {
        let larger = self.size.get().checked_shr(level)?;
        if larger & 1 == 0 {
            return None;
        }
        self.hashes.get(larger.count_ones() as usize - 1).copied()
    }

    /// The roots of the perfect subtrees, largest first, that are known to be those of the tree.
    pub(crate) fn of_edge(size: TreeSize, hashes: Vec<Hash>) -> Self {
        debug_assert_eq!(hashes.len(), size.get().count_ones() as usize);
        Self { size, hashes }
    }
}

/// Joins adjacent subtrees, largest first, into the one they make up.
pub(crate) fn root_of_subtrees(hashes: &[Hash]) -> Option<Hash> {
    let (smallest, larger) = hashes.split_last()?;
    Some(larger.iter().rfold(*smallest, |right, left| hash_children(*left, right)))
}
