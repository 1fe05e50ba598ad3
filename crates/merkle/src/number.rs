//! Positions and sizes. A size is one more than the last index, so they are two types.

use std::fmt;

/// The position of an entry in the log, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafIndex(u64);

impl LeafIndex {
    /// The leaf at `index`.
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for LeafIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many leaves a tree has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeSize(u64);

impl TreeSize {
    /// The size of the tree without leaves.
    pub const EMPTY: Self = Self(0);

    /// A tree of `size` leaves.
    pub const fn new(size: u64) -> Self {
        Self(size)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// A tree of size n holds leaves 0..n: only a size can vouch for an index.
    pub const fn holds(self, leaf: LeafIndex) -> bool {
        leaf.0 < self.0
    }

    /// The position that the next appended leaf takes.
    pub const fn next_leaf(self) -> LeafIndex {
        LeafIndex(self.0)
    }

    /// The newest leaf; an empty tree has none.
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

/// A perfect subtree: the one over leaves `index·2^level .. (index+1)·2^level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    /// 0 for leaves; 63 at most.
    pub level: u8,
    /// The node's number on its level.
    pub index: u64,
}

impl NodeId {
    /// The node that a leaf is.
    pub const fn leaf(leaf: LeafIndex) -> Self {
        Self { level: 0, index: leaf.get() }
    }
}

/// The perfect subtrees that make up leaves `start..end`, largest (leftmost) first.
///
/// `start` must be a multiple of the largest power of two that fits into the range: so it is for
/// the leaves of a whole tree, and for a ragged right part of one.
pub(crate) fn perfect_subtrees(start: u64, end: u64) -> impl Iterator<Item = NodeId> {
    let mut at = start;
    std::iter::from_fn(move || {
        let level = (end - at).checked_ilog2()?;
        let node = NodeId { level: level as u8, index: at >> level };
        at += 1 << level;
        Some(node)
    })
}
