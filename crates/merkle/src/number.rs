//! Leaf positions and tree sizes. A size is one more than the last index, so they are two types.

use std::fmt;

/// The position of a leaf in the log, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafIndex(u64);

impl LeafIndex {
    /// Creates the index of a leaf.
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// The index as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for LeafIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of leaves of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeSize(u64);

impl TreeSize {
    /// The size of the empty tree.
    pub const EMPTY: Self = Self(0);

    /// Creates a tree size.
    pub const fn new(size: u64) -> Self {
        Self(size)
    }

    /// The size as a number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns `true` if a tree of this size has the leaf: a tree of size n has leaves 0..n.
    pub const fn holds(self, leaf: LeafIndex) -> bool {
        leaf.0 < self.0
    }

    /// The index of the next leaf to be appended.
    pub const fn next_leaf(self) -> LeafIndex {
        LeafIndex(self.0)
    }

    /// The index of the last leaf; `None` for the empty tree.
    pub const fn last_leaf(self) -> Option<LeafIndex> {
        match self.0.checked_sub(1) {
            Some(last) => Some(LeafIndex(last)),
            None => None,
        }
    }
}

impl fmt::Display for TreeSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A perfect subtree: the node over leaves `index·2^level .. (index+1)·2^level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    /// Height above the leaves: 0 for a leaf; at most 63.
    pub level: u8,
    /// Index of the node on its level, from 0.
    pub index: u64,
}

impl NodeId {
    /// The node of a leaf, at level 0.
    pub const fn leaf(leaf: LeafIndex) -> Self {
        Self { level: 0, index: leaf.get() }
    }
}

/// The perfect subtrees that together cover leaves `start..end`, largest (leftmost) first.
///
/// `start` must be a multiple of the largest power of two that fits into the range. This holds for the leaves of a
/// whole tree, and for the incomplete subtree at its right edge.
pub(crate) fn perfect_subtrees(start: u64, end: u64) -> impl Iterator<Item = NodeId> {
    let mut at = start;
    std::iter::from_fn(move || {
        let level = (end - at).checked_ilog2()?;
        let node = NodeId { level: level as u8, index: at >> level };
        at += 1 << level;
        Some(node)
    })
}
