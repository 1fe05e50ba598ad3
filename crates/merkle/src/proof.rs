//! Making proofs: first the required nodes are planned, then their hashes are folded.
//!
//! RFC 9162, 2.1.3.1 (inclusion) and 2.1.4.1 (consistency). A tree stores perfect subtrees only; if a proof needs the
//! hash of an incomplete subtree at the right edge, the plan names the perfect subtrees that it consists of, and
//! [`ProofPlan::fold`] combines them.

use crate::{Hash, LeafIndex, NodeId, TreeSize, number::perfect_subtrees, range::root_of_subtrees};

/// Reasons for which a proof does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProof {
    /// The tree does not have the leaf.
    #[error("a tree of size {size} has no leaf {leaf}")]
    NoLeaf {
        /// The requested leaf.
        leaf: LeafIndex,
        /// The size of the tree.
        size: TreeSize,
    },
    /// The older tree is empty: only a tree with leaves can be proven to be a prefix.
    #[error("nothing can be proven about the empty tree")]
    EmptyOlder,
    /// The older tree is larger than the newer one.
    #[error("a tree of size {newer} does not extend one of size {older}")]
    Shrunk {
        /// The size of the older tree.
        older: TreeSize,
        /// The size of the newer tree.
        newer: TreeSize,
    },
}

/// The nodes that a proof consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofPlan {
    size: TreeSize,
    nodes: Vec<NodeId>,
    /// End of each proof element's nodes in `nodes`.
    ends: Vec<usize>,
}

/// Plans the inclusion proof of a leaf. The proof is empty for a tree of one leaf.
pub fn inclusion(leaf: LeafIndex, size: TreeSize) -> Result<ProofPlan, NoProof> {
    if !size.holds(leaf) {
        return Err(NoProof::NoLeaf { leaf, size });
    }
    let mut plan = ProofPlan::new(size);
    plan.climb(NodeId::leaf(leaf));
    Ok(plan)
}

/// Plans the root of the tree of a size: [`ProofPlan::fold`] returns it as the only hash.
pub fn root(size: TreeSize) -> Result<ProofPlan, NoProof> {
    if size.last_leaf().is_none() {
        return Err(NoProof::EmptyOlder);
    }
    let mut plan = ProofPlan::new(size);
    plan.push(perfect_subtrees(0, size.get()));
    Ok(plan)
}

/// Plans the consistency proof between two sizes. The proof is empty for equal sizes (a case that the RFC excludes),
/// where only equality of the roots is to be checked.
pub fn consistency(older: TreeSize, newer: TreeSize) -> Result<ProofPlan, NoProof> {
    if older > newer {
        return Err(NoProof::Shrunk { older, newer });
    }
    let Some(last) = older.last_leaf() else {
        return Err(NoProof::EmptyOlder);
    };
    let mut plan = ProofPlan::new(newer);
    if older == newer {
        return Ok(plan);
    }
    // Start at the smallest perfect subtree on the older tree's right edge: both roots are above it.
    let level = older.get().trailing_zeros();
    let start = NodeId { level: level as u8, index: last.get() >> level };
    if !older.get().is_power_of_two() {
        plan.push([start]);
    }
    plan.climb(start);
    Ok(plan)
}

impl ProofPlan {
    fn new(size: TreeSize) -> Self {
        Self { size, nodes: Vec::new(), ends: Vec::new() }
    }

    /// The size of the tree in which the proof is made.
    pub const fn size(&self) -> TreeSize {
        self.size
    }

    /// The nodes to fetch, in the order in which [`fold`](Self::fold) requests them. All are perfect subtrees of the
    /// tree.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The number of hashes in the proof.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns `true` if the proof has no hashes.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Makes the proof: fetches each node once, and combines those that form an incomplete subtree.
    pub fn fold<E>(&self, fetch: impl FnMut(NodeId) -> Result<Hash, E>) -> Result<Vec<Hash>, E> {
        let hashes: Vec<Hash> = self.nodes.iter().copied().map(fetch).collect::<Result<_, E>>()?;
        let starts = std::iter::once(&0).chain(&self.ends);
        let elements = starts.zip(&self.ends).map(|(&from, &to)| &hashes[from..to]);
        Ok(elements.filter_map(root_of_subtrees).collect())
    }

    /// Adds the sibling of `node`, and of each of its ancestors below the root.
    fn climb(&mut self, node: NodeId) {
        let Some(last_leaf) = self.size.last_leaf() else {
            return;
        };
        let mut at = node;
        let mut last = last_leaf.get() >> node.level;
        while last > 0 {
            let sibling = at.index ^ 1;
            if sibling < last {
                self.push([NodeId { level: at.level, index: sibling }]);
            } else if sibling == last {
                self.push(perfect_subtrees(sibling << at.level, self.size.get()));
            }
            at = NodeId { level: at.level + 1, index: at.index >> 1 };
            last >>= 1;
        }
    }

    /// Adds one proof element, which consists of the given nodes.
    fn push(&mut self, parts: impl IntoIterator<Item = NodeId>) {
        self.nodes.extend(parts);
        self.ends.push(self.nodes.len());
    }
}
