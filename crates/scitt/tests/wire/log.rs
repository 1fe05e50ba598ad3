//! A log computed the slow way, straight from RFC 9162, sections 2.1.1 to 2.1.4.

use merkle::{EntryDigest, Hash, LeafHash, LeafIndex, RootHash, TreeSize, hash_children};
use scitt::{PublicKey, ReceiptHeader, SignedRoot, Signer, SigningKey};

use crate::support::ed25519;

/// A log small enough to compute by hand: the tree is split as RFC 9162, section 2.1.1, says.
pub struct Log {
    pub leaves: Vec<LeafHash>,
    pub key: SigningKey,
}

impl Log {
    pub fn of(size: usize) -> Self {
        Self::signing_with(size, ed25519())
    }

    pub fn signing_with(size: usize, key: SigningKey) -> Self {
        let leaf = |n: usize| EntryDigest::of(&n.to_be_bytes()).leaf_hash();
        Self { leaves: (0..size).map(leaf).collect(), key }
    }

    pub fn header(&self) -> ReceiptHeader {
        ReceiptHeader {
            alg: self.key.algorithm(),
            kid: vec![0x6b; 32],
            iss: "https://log.example".into(),
            sub: "log.example".into(),
            iat: 1_700_000_000,
            tree_size: TreeSize::new(self.leaves.len() as u64),
        }
    }

    pub fn root(&self) -> RootHash {
        RootHash::from_bytes(*root(&self.leaves).as_bytes())
    }

    pub fn signed(&self) -> SignedRoot {
        self.header().sign_root(&self.key, &self.root()).unwrap()
    }

    pub fn receipt(&self, index: usize) -> Vec<u8> {
        self.signed().inclusion_receipt(LeafIndex::new(index as u64), &path(&self.leaves, index))
    }

    pub fn consistency(&self, older: usize) -> Vec<u8> {
        let path = consistency_path(&self.leaves, older, true);
        self.signed().consistency_receipt(TreeSize::new(older as u64), &path)
    }

    pub fn public(&self) -> &PublicKey {
        self.key.public_key()
    }
}

fn split(size: usize) -> usize {
    size.next_power_of_two() / 2
}

fn root(leaves: &[LeafHash]) -> Hash {
    match leaves {
        [only] => Hash::from_bytes(*only.as_bytes()),
        many => {
            let (left, right) = many.split_at(split(many.len()));
            hash_children(root(left), root(right))
        }
    }
}

pub fn path(leaves: &[LeafHash], index: usize) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(split(leaves.len()));
    let (mut below, sibling) = match index.checked_sub(left.len()) {
        None => (path(left, index), root(right)),
        Some(index) => (path(right, index), root(left)),
    };
    below.push(sibling);
    below
}

fn consistency_path(leaves: &[LeafHash], older: usize, known: bool) -> Vec<Hash> {
    if older == leaves.len() {
        return if known { Vec::new() } else { vec![root(leaves)] };
    }
    let (left, right) = leaves.split_at(split(leaves.len()));
    let (mut below, sibling) = match older.checked_sub(left.len()) {
        None | Some(0) => (consistency_path(left, older, known), root(right)),
        Some(rest) => (consistency_path(right, rest, false), root(left)),
    };
    below.push(sibling);
    below
}
