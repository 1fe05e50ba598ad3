//! Compact ranges: the right edge of a tree, sufficient for appending leaves and computing the root.

use crate::{Hash, LeafHash, RootHash, TreeSize, empty_root, hash_children};

/// Maximum size of a restored range, so that growth cannot overflow.
pub const MAX_TREE_SIZE: TreeSize = TreeSize::new(1 << 62);

/// Errors of [`CompactRange::from_parts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRange {
    /// The number of hashes is not the number of perfect subtrees of a tree of this size.
    #[error("a tree of size {size} has {} perfect subtrees, not {given}", size.get().count_ones())]
    Count {
        /// The given size.
        size: TreeSize,
        /// The number of given hashes.
        given: usize,
    },
    /// The size exceeds [`MAX_TREE_SIZE`].
    #[error("{0} leaves are more than a tree can have")]
    TooLarge(TreeSize),
}

/// The roots of the perfect subtrees of a tree: one for each bit set in its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactRange {
    size: TreeSize,
    hashes: Vec<Hash>,
}

impl CompactRange {
    /// Creates the range of the empty tree.
    pub const fn empty() -> Self {
        Self { size: TreeSize::EMPTY, hashes: Vec::new() }
    }

    /// Restores a range from its [`size`](Self::size) and [`hashes`](Self::hashes). The hashes cannot be verified here:
    /// compare [`root`](Self::root) with a trusted root.
    pub fn from_parts(size: TreeSize, hashes: Vec<Hash>) -> Result<Self, BadRange> {
        if size > MAX_TREE_SIZE {
            return Err(BadRange::TooLarge(size));
        }
        if hashes.len() != size.get().count_ones() as usize {
            return Err(BadRange::Count { size, given: hashes.len() });
        }
        Ok(Self { size, hashes })
    }

    /// The tree size: the number of leaves.
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

    /// Appends a leaf.
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

    /// The root of the perfect subtree of 2^`level` leaves; `None` if the size does not have that bit.
    pub(crate) fn at_level(&self, level: u32) -> Option<Hash> {
        let larger = self.size.get().checked_shr(level)?;
        if larger & 1 == 0 {
            return None;
        }
        self.hashes.get(larger.count_ones() as usize - 1).copied()
    }

    /// Creates a range from the roots of a tree's perfect subtrees, largest first, without checks.
    pub(crate) fn of_edge(size: TreeSize, hashes: Vec<Hash>) -> Self {
        debug_assert_eq!(hashes.len(), size.get().count_ones() as usize);
        Self { size, hashes }
    }
}

/// Combines adjacent subtrees, largest first, into the root over all of them; `None` if there are none.
pub(crate) fn root_of_subtrees(hashes: &[Hash]) -> Option<Hash> {
    let (smallest, larger) = hashes.split_last()?;
    Some(larger.iter().rfold(*smallest, |right, left| hash_children(*left, right)))
}
