//! Roots of RFC 9162 trees, computed by `rs_merkle`: a second implementation that shares no code with `merkle`.
//!
//! Checks of a whole log (`backup verify`, `log fsck --deep`, `audit`) compare the root that our own tree gives with this
//! one: a fault of our tree, which the log and its checks would share, is so found in the field.
//!
//! ```
//! use independent_root::{IndependentRoot, hash_leaf};
//!
//! let mut root = IndependentRoot::default();
//! assert_eq!(root.root(), None); // `rs_merkle` knows no empty tree
//! root.append(hash_leaf(b"a statement"));
//! assert_eq!(root.root(), Some(hash_leaf(b"a statement")));
//! ```

use rs_merkle::{Hasher, MerkleTree};
use sha2::{Digest, Sha256};

/// Number of leaves of a subtree that is reduced to its root: a power of two, so that it is a node of every larger tree.
const SUBTREE: usize = 4096;

/// Hashes of RFC 9162, section 2.1.1, for `rs_merkle`.
#[derive(Clone, Debug)]
struct Rfc9162;

impl Hasher for Rfc9162 {
    type Hash = [u8; 32];

    fn hash(data: &[u8]) -> [u8; 32] {
        hash_leaf(data)
    }

    fn concat_and_hash(left: &[u8; 32], right: Option<&[u8; 32]>) -> [u8; 32] {
        match right {
            Some(right) => {
                Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
            }
            None => *left,
        }
    }
}

/// Computes a leaf hash: `SHA-256(0x00 || entry)`.
pub fn hash_leaf(entry: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

/// Root of a tree that grows by leaves. Takes 32 bytes for each 4,096 leaves, and 128 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndependentRoot {
    /// Roots of the full subtrees.
    subtrees: Vec<[u8; 32]>,
    /// Leaf hashes after them.
    leaves: Vec<[u8; 32]>,
}

impl IndependentRoot {
    /// Appends a leaf, by its leaf hash.
    pub fn append(&mut self, leaf_hash: [u8; 32]) {
        self.leaves.push(leaf_hash);
        if self.leaves.len() == SUBTREE {
            self.subtrees.extend(root_of(&self.leaves));
            self.leaves.clear();
        }
    }

    /// Returns the root; `None` for a tree without leaves.
    pub fn root(&self) -> Option<[u8; 32]> {
        let nodes: Vec<[u8; 32]> = self.subtrees.iter().copied().chain(root_of(&self.leaves)).collect();
        root_of(&nodes)
    }
}

fn root_of(nodes: &[[u8; 32]]) -> Option<[u8; 32]> {
    MerkleTree::<Rfc9162>::from_leaves(nodes).root()
}

#[cfg(test)]
mod tests {
    use merkle::{CompactRange, LeafHash};

    use super::*;

    #[test]
    fn every_tree_of_up_to_three_subtrees_has_the_root_that_our_tree_gives() {
        let (mut theirs, mut ours) = (IndependentRoot::default(), CompactRange::empty());
        for n in 0..3 * SUBTREE as u64 {
            let leaf = hash_leaf(&n.to_be_bytes());
            theirs.append(leaf);
            ours.append(LeafHash::from_bytes(leaf));
            // All small trees, and those around the ends of subtrees.
            if n < 300 || (n as usize + 3) % SUBTREE < 6 || n % 997 == 0 {
                assert_eq!(theirs.root(), Some(*ours.root().as_bytes()), "{n}");
            }
        }
    }

    #[test]
    fn another_leaf_gives_another_root() {
        let root_of = |entries: [&[u8]; 3]| {
            let mut root = IndependentRoot::default();
            entries.into_iter().for_each(|entry| root.append(hash_leaf(entry)));
            root.root()
        };
        assert_ne!(root_of([b"a", b"b", b"c"]), root_of([b"a", b"b", b"d"]));
    }
}
