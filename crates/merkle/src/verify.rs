//! Verifying proofs: RFC 9162, 2.1.3.2 (inclusion) and 2.1.4.2 (consistency).
//!
//! The RFC's algorithm shifts two numbers while it reads the proof. The direction of each step follows from the index
//! and the size alone, so here the steps are counted first: a proof of any other length is rejected before anything is
//! hashed, and no loop depends on untrusted input.
//!
//! Not here: which roots to trust. Note that an inclusion proof authenticates neither its index nor its size: the same
//! path and root verify for other pairs, too.

use crate::{Hash, LeafHash, LeafIndex, RootHash, TreeSize, hash_children};

/// Reasons for rejecting a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The tree does not have the leaf.
    #[error("a tree of size {size} has no leaf {leaf}")]
    NoLeaf {
        /// The leaf in question.
        leaf: LeafIndex,
        /// The size of the tree.
        size: TreeSize,
    },
    /// The number of hashes is wrong for these positions and sizes.
    #[error("hashes of the proof: {given}, needed: {needed}")]
    Length {
        /// Number of hashes in the proof.
        given: usize,
        /// Required number of hashes.
        needed: usize,
    },
    /// The older tree is empty: a consistency proof from it would prove nothing.
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
    /// The proof leads to another root than the given one.
    #[error("the proof does not lead to the tree's root")]
    Root,
    /// The proof leads to another root of the older tree than the given one.
    #[error("the proof does not lead to the older tree's root")]
    OlderRoot,
}

/// The root to which an inclusion path leads. The caller must compare it with a signed root.
pub fn implied_root(
    leaf: LeafHash,
    index: LeafIndex,
    size: TreeSize,
    path: &[Hash],
) -> Result<RootHash, ProofError> {
    if !size.holds(index) {
        return Err(ProofError::NoLeaf { leaf: index, size });
    }
    let climb = Climb::from_leaf(index.get(), size.get() - 1);
    expect_length(path, climb.steps())?;
    Ok(climb.root(leaf.into(), path).into_root())
}

/// One step of a path to a root: two nodes and their parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The left node.
    pub left: Hash,
    /// The right node.
    pub right: Hash,
    /// Whether the left node is the one that the path gives; the other one is the parent of the step before.
    pub sibling_is_left: bool,
    /// The hash of both.
    pub parent: Hash,
}

/// The steps of an inclusion path, from the leaf to the root: the parent of the last one is the implied root.
pub fn inclusion_steps(
    leaf: LeafHash,
    index: LeafIndex,
    size: TreeSize,
    path: &[Hash],
) -> Result<Vec<PathStep>, ProofError> {
    if !size.holds(index) {
        return Err(ProofError::NoLeaf { leaf: index, size });
    }
    let climb = Climb::from_leaf(index.get(), size.get() - 1);
    expect_length(path, climb.steps())?;
    Ok(steps_from(leaf.into(), climb.siblings(path)))
}

/// Verifies that the leaf is in the tree with this root. [`ProofError::Root`] if the path leads to another root.
pub fn inclusion(
    leaf: LeafHash,
    index: LeafIndex,
    size: TreeSize,
    path: &[Hash],
    root: RootHash,
) -> Result<(), ProofError> {
    match implied_root(leaf, index, size, path)? {
        implied if implied == root => Ok(()),
        _ => Err(ProofError::Root),
    }
}

/// Verifies that the older tree is a prefix of the tree to which the path leads, and returns the root of the latter.
/// For equal sizes the path must be empty, and the roots are equal.
pub fn implied_consistency(
    older: TreeSize,
    newer: TreeSize,
    older_root: RootHash,
    path: &[Hash],
) -> Result<RootHash, ProofError> {
    if older > newer {
        return Err(ProofError::Shrunk { older, newer });
    }
    if older == TreeSize::EMPTY {
        return Err(ProofError::EmptyOlder);
    }
    if older == newer {
        return expect_length(path, 0).map(|()| older_root);
    }
    extend(older, newer, older_root, path)
}

/// Verifies that the older tree is a prefix of the newer one.
pub fn consistency(
    older: TreeSize,
    newer: TreeSize,
    older_root: RootHash,
    newer_root: RootHash,
    path: &[Hash],
) -> Result<(), ProofError> {
    match implied_consistency(older, newer, older_root, path)? {
        implied if implied == newer_root => Ok(()),
        _ => Err(ProofError::Root),
    }
}

/// The roots of the older and the newer tree to which a path leads, without comparing them with given roots. The first
/// node is passed as `start`, even if a proof omits it because it is the older root.
///
/// If one of them is the root that a log signed for that size and the other is not, no tree has both: proof of the
/// log's misbehaviour.
pub fn implied_roots(
    older: TreeSize,
    newer: TreeSize,
    start: Hash,
    path: &[Hash],
) -> Result<(RootHash, RootHash), ProofError> {
    let climb = climb(older, newer)?;
    expect_length(path, climb.steps())?;
    Ok((climb.left_root(start, path).into_root(), climb.root(start, path).into_root()))
}

/// The two ways of a consistency proof, from one hash to the root of the older tree and to that of the newer one. The parent
/// of the last step is the root; without steps, the start is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistencySteps {
    /// The hash at which both ways begin.
    pub start: Hash,
    /// Whether the start is the first hash of the proof. A proof omits it if it is the older root.
    pub start_is_given: bool,
    /// The steps to the root of the older tree: those of the newer one that have a left sibling.
    pub older: Vec<PathStep>,
    /// The steps to the root of the newer tree.
    pub newer: Vec<PathStep>,
}

/// The steps of a consistency proof for `0 < older < newer`.
///
/// # Errors
/// [`ProofError::OlderRoot`] if the steps lead to another root of the older tree. The caller must compare the newer root
/// with a signed one.
pub fn consistency_steps(
    older: TreeSize,
    newer: TreeSize,
    older_root: RootHash,
    path: &[Hash],
) -> Result<ConsistencySteps, ProofError> {
    if older == newer {
        return Err(ProofError::Shrunk { older, newer });
    }
    let climb = climb(older, newer)?;
    let (start, siblings) = climb.start(older, older_root, path)?;
    if climb.left_root(start, siblings).into_root() != older_root {
        return Err(ProofError::OlderRoot);
    }
    Ok(ConsistencySteps {
        start,
        start_is_given: siblings.len() < path.len(),
        older: steps_from(start, climb.siblings(siblings).filter(|(_, is_left)| *is_left)),
        newer: steps_from(start, climb.siblings(siblings)),
    })
}

/// The steps from a node over its siblings, each with whether it is the left one.
fn steps_from(mut node: Hash, siblings: impl Iterator<Item = (Hash, bool)>) -> Vec<PathStep> {
    let step = |(sibling, sibling_is_left)| {
        let (left, right) = if sibling_is_left { (sibling, node) } else { (node, sibling) };
        node = hash_children(left, right);
        PathStep { left, right, sibling_is_left, parent: node }
    };
    siblings.map(step).collect()
}

/// Verifies a consistency proof for `0 < older < newer`.
fn extend(
    older: TreeSize,
    newer: TreeSize,
    older_root: RootHash,
    path: &[Hash],
) -> Result<RootHash, ProofError> {
    let climb = climb(older, newer)?;
    let (start, path) = climb.start(older, older_root, path)?;
    if climb.left_root(start, path).into_root() != older_root {
        return Err(ProofError::OlderRoot);
    }
    Ok(climb.root(start, path).into_root())
}

/// The climb from the smallest perfect subtree at the older tree's right edge.
fn climb(older: TreeSize, newer: TreeSize) -> Result<Climb, ProofError> {
    let (Some(last), Some(newest)) = (older.last_leaf(), newer.last_leaf()) else {
        return Err(ProofError::EmptyOlder);
    };
    if older > newer {
        return Err(ProofError::Shrunk { older, newer });
    }
    let level = older.get().trailing_zeros();
    Ok(Climb::from_leaf(last.get() >> level, newest.get() >> level))
}

/// The steps from a node to the root.
struct Climb {
    /// Index of the node: below the fork, a set bit is a step with the sibling on the left.
    index: u64,
    /// Number of steps below the fork, until the last node of the level is the same node or an ancestor; siblings are
    /// on both sides.
    below_fork: usize,
    /// Number of steps on the right edge, where only left siblings exist.
    on_edge: usize,
}

impl Climb {
    /// The climb from node `index` of a level whose last node is `last`.
    fn from_leaf(index: u64, last: u64) -> Self {
        let below_fork = u64::BITS - (index ^ last).leading_zeros();
        let edge = index.checked_shr(below_fork).unwrap_or(0);
        Self { index, below_fork: below_fork as usize, on_edge: edge.count_ones() as usize }
    }

    fn steps(&self) -> usize {
        self.below_fork + self.on_edge
    }

    /// Splits a consistency proof into the node where the climb begins and its siblings.
    fn start<'p>(
        &self,
        older: TreeSize,
        older_root: RootHash,
        path: &'p [Hash],
    ) -> Result<(Hash, &'p [Hash]), ProofError> {
        // An older tree that is a single perfect subtree is the start itself; otherwise the path begins with the start.
        let starts_in_path = !older.get().is_power_of_two();
        expect_length(path, self.steps() + usize::from(starts_in_path))?;
        Ok(match path.split_first() {
            Some((start, rest)) if starts_in_path => (*start, rest),
            _ => (older_root.into(), path),
        })
    }

    /// The nodes of the path, each with whether it is the left sibling.
    fn siblings(&self, path: &[Hash]) -> impl Iterator<Item = (Hash, bool)> {
        path.iter().enumerate().map(move |(height, sibling)| (*sibling, self.has_left_sibling(height)))
    }

    /// The root over all nodes of the path.
    fn root(&self, start: Hash, path: &[Hash]) -> Hash {
        let step = |node, (height, sibling): (usize, &Hash)| match self.has_left_sibling(height) {
            true => hash_children(*sibling, node),
            false => hash_children(node, *sibling),
        };
        path.iter().enumerate().fold(start, step)
    }

    /// The root over the start and the left siblings only: that of the older tree.
    fn left_root(&self, start: Hash, path: &[Hash]) -> Hash {
        let step = |node, (height, sibling): (usize, &Hash)| match self.has_left_sibling(height) {
            true => hash_children(*sibling, node),
            false => node,
        };
        path.iter().enumerate().fold(start, step)
    }

    fn has_left_sibling(&self, height: usize) -> bool {
        height >= self.below_fork || self.index >> height & 1 == 1
    }
}

fn expect_length(path: &[Hash], needed: usize) -> Result<(), ProofError> {
    match path.len() {
        given if given == needed => Ok(()),
        given => Err(ProofError::Length { given, needed }),
    }
}
