//! Checking proofs: RFC 9162, 2.1.3.2 (inclusion) and 2.1.4.2 (consistency).
//!
//! The RFC walks two numbers upwards. Which way each step goes follows from the index and the
//! size alone, so here the steps are counted first: a proof of any other length is refused before
//! anything is hashed, and no loop depends on what a stranger sent.
//!
//! Not here: whose roots to trust. Note that an inclusion proof authenticates neither the index
//! nor the size it came with: the same path and root verify for other pairs too.

use crate::{Hash, LeafHash, LeafIndex, RootHash, TreeSize, hash_children};

/// Why a proof proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The tree does not have the leaf.
    #[error("a tree of size {size} has no leaf {leaf}")]
    NoLeaf {
        /// The leaf.
        leaf: LeafIndex,
        /// The size of the tree.
        size: TreeSize,
    },
    /// A proof for these numbers has another number of hashes.
    #[error("the proof has {given} hashes, and must have {needed}")]
    Length {
        /// How many hashes the proof has.
        given: usize,
        /// How many it must have.
        needed: usize,
    },
    /// A consistency proof from the empty tree would prove nothing.
    #[error("nothing can be proven about the empty tree")]
    EmptyOlder,
    /// The older tree is larger than the newer.
    #[error("a tree of size {newer} does not extend one of size {older}")]
    Shrunk {
        /// The size said to be older.
        older: TreeSize,
        /// The size said to be newer.
        newer: TreeSize,
    },
    /// The proof implies another root than the one given.
    #[error("the proof does not lead to the tree's root")]
    Root,
    /// The proof implies another root of the older tree than the one given.
    #[error("the proof does not lead to the older tree's root")]
    OlderRoot,
}

/// The root that this path implies. Comparing it with a signed root is the caller's business.
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

/// Checks that the leaf is in the tree with this root.
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

/// Checks that the tree with the older root is the beginning of the tree that the path implies,
/// and gives the root of that. For equal sizes the path must be empty, and the root is the same.
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

/// Checks that the tree with the newer root extends the tree with the older root.
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

/// The two roots that a path implies, whatever roots they should be: that of the older tree and that of the newer. The first
/// node is given beside the path, also where a proof leaves it out because it is the older root.
///
/// If one is the root that a log signed and the other is not, no tree has both: that is a proof against the log.
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

/// `0 < older < newer`.
fn extend(
    older: TreeSize,
    newer: TreeSize,
    older_root: RootHash,
    path: &[Hash],
) -> Result<RootHash, ProofError> {
    let climb = climb(older, newer)?;
    // An older tree that is one perfect subtree is where the climb starts; else the path says.
    let starts_in_path = !older.get().is_power_of_two();
    expect_length(path, climb.steps() + usize::from(starts_in_path))?;
    let (start, path) = match path.split_first() {
        Some((start, rest)) if starts_in_path => (*start, rest),
        _ => (older_root.into(), path),
    };
    if climb.left_root(start, path).into_root() != older_root {
        return Err(ProofError::OlderRoot);
    }
    Ok(climb.root(start, path).into_root())
}

/// The way up from the smallest perfect subtree at the older tree's right edge.
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

/// The way from a node to the root.
struct Climb {
    /// The node's index: below the fork, a set bit is a step with the sibling on the left.
    index: u64,
    /// Steps until the last node of the level is the same or an ancestor: siblings on both sides.
    below_fork: usize,
    /// Steps on the right edge, where only left siblings exist.
    on_edge: usize,
}

impl Climb {
    /// From node `index` of a level whose last node is `last`.
    fn from_leaf(index: u64, last: u64) -> Self {
        let below_fork = u64::BITS - (index ^ last).leading_zeros();
        let edge = index.checked_shr(below_fork).unwrap_or(0);
        Self { index, below_fork: below_fork as usize, on_edge: edge.count_ones() as usize }
    }

    fn steps(&self) -> usize {
        self.below_fork + self.on_edge
    }

    /// The root over everything that the path covers.
    fn root(&self, start: Hash, path: &[Hash]) -> Hash {
        let step = |node, (height, sibling): (usize, &Hash)| match self.has_left_sibling(height) {
            true => hash_children(*sibling, node),
            false => hash_children(node, *sibling),
        };
        path.iter().enumerate().fold(start, step)
    }

    /// The root over the node and what is to the left of it.
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
