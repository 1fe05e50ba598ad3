//! Growth of a tree by a batch: the new right edge, and the inclusion paths of the new leaves.
//!
//! The paths are computed from the old edge and the batch alone, so that a log can answer all waiting requests after a
//! commit without reading its tree. All nodes are in one vector, level by level: a growth makes a few allocations,
//! independent of the number of leaves.

use crate::{
    CompactRange, Hash, LeafHash, LeafIndex, NodeId, RootHash, TreeSize, hash_children,
    number::perfect_subtrees,
};

/// Result of [`CompactRange::grow`].
#[derive(Clone, Debug)]
pub struct TreeGrowth {
    from: TreeSize,
    range: CompactRange,
    root: RootHash,
    nodes: Vec<Hash>,
    levels: Vec<Level>,
}

/// The nodes of one level that the batch touched, and the left neighbour of the first if it is a left sibling. The last
/// node of the tree is included even if its subtree is not perfect.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Index of the first stored node; always even.
    first: u64,
    /// Number of nodes of the level in the whole tree.
    end: u64,
    /// Position of the first stored node in `nodes`.
    offset: usize,
}

impl CompactRange {
    /// Appends a batch and keeps the nodes for the paths of its leaves. The range itself is unchanged, so that a failed
    /// commit needs no rollback.
    pub fn grow(&self, leaves: &[LeafHash]) -> TreeGrowth {
        TreeGrowth::new(self, leaves)
    }
}

impl TreeGrowth {
    fn new(old: &CompactRange, leaves: &[LeafHash]) -> Self {
        let from = old.size();
        if leaves.is_empty() {
            return Self {
                from,
                range: old.clone(),
                root: old.root(),
                nodes: Vec::new(),
                levels: Vec::new(),
            };
        }
        let size = TreeSize::new(from.get() + leaves.len() as u64);
        let (nodes, levels) = all_levels(old, size, leaves);
        let mut growth = Self {
            from,
            range: CompactRange::empty(),
            root: nodes[nodes.len() - 1].into_root(),
            nodes,
            levels,
        };
        let edge = perfect_subtrees(0, size.get()).map(|node| growth.held(node));
        growth.range = CompactRange::of_edge(size, edge.collect());
        growth
    }

    /// The tree size before the batch.
    pub const fn from(&self) -> TreeSize {
        self.from
    }

    /// The tree size after the batch.
    pub const fn size(&self) -> TreeSize {
        self.range.size()
    }

    /// The right edge after the batch.
    pub const fn range(&self) -> &CompactRange {
        &self.range
    }

    /// The right edge after the batch, without a copy.
    pub fn into_range(self) -> CompactRange {
        self.range
    }

    /// The root after the batch.
    pub const fn root(&self) -> RootHash {
        self.root
    }

    /// The inclusion path of a leaf of the batch in the new tree (RFC 9162, 2.1.3.1); `None` for any other leaf.
    pub fn path(&self, leaf: LeafIndex) -> Option<Vec<Hash>> {
        if leaf < self.from.next_leaf() || !self.size().holds(leaf) {
            return None;
        }
        let mut path = Vec::with_capacity(self.levels.len());
        for (above, level) in self.levels.iter().enumerate() {
            let sibling = (leaf.get() >> above) ^ 1;
            if sibling < level.end {
                path.push(self.nodes[level.offset + (sibling - level.first) as usize]);
            }
        }
        Some(path)
    }

    /// The roots of the perfect subtrees of 2^`level` leaves that the batch completed, in order.
    pub(crate) fn completed(&self, level: u32) -> &[Hash] {
        let Some(held) = self.levels.get(level as usize) else {
            return &[];
        };
        let first = (self.from.get() >> level) - held.first;
        let end = (self.size().get() >> level) - held.first;
        &self.nodes[held.offset + first as usize..held.offset + end as usize]
    }

    /// The hash of a perfect subtree on the right edge. It is stored: its level exists, since the tree has at least
    /// 2^level leaves, and the node was either completed by the batch or is the left neighbour.
    fn held(&self, node: NodeId) -> Hash {
        let level = self.levels[usize::from(node.level)];
        self.nodes[level.offset + (node.index - level.first) as usize]
    }
}

/// Computes the nodes of all levels, from the leaves up to the root.
fn all_levels(old: &CompactRange, size: TreeSize, leaves: &[LeafHash]) -> (Vec<Hash>, Vec<Level>) {
    let height = size.get().ilog2() as usize + 2;
    let mut nodes = Vec::with_capacity(2 * leaves.len() + 2 * height);
    let mut levels = Vec::with_capacity(height);
    let mut level = Level { first: old.size().get() & !1, end: size.get(), offset: 0 };
    nodes.extend(old.at_level(0));
    nodes.extend(leaves.iter().copied().map(Hash::from));
    levels.push(level);
    while level.end > 1 {
        level = level_above(old, level, levels.len() as u32, &mut nodes);
        levels.push(level);
    }
    (nodes, levels)
}

fn level_above(old: &CompactRange, below: Level, height: u32, nodes: &mut Vec<Hash>) -> Level {
    let offset = nodes.len();
    nodes.extend(old.at_level(height));
    let mut at = below.offset;
    while at + 1 < offset {
        nodes.push(hash_children(nodes[at], nodes[at + 1]));
        at += 2;
    }
    if at < offset {
        nodes.push(nodes[at]); // a ragged right end moves up unchanged
    }
    Level { first: (old.size().get() >> height) & !1, end: below.end.div_ceil(2), offset }
}
