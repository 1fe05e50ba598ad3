//! Merkle trees and their proofs (RFC 9162).

use merkle::verify;
use merkle::{CompactRange, Hash, LeafHash, LeafIndex, ProofError, RootHash, TreeSize, hash_leaf};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bytes::{ByteString, HashText};
use crate::error::CoreError;

/// Verifies an inclusion proof.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyInclusion {
    leaf_hash: HashText,
    leaf_index: u64,
    tree_size: u64,
    path: Vec<HashText>,
    root: HashText,
}

/// Verifies a consistency proof.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyGrowth {
    older_size: u64,
    newer_size: u64,
    older_root: HashText,
    newer_root: HashText,
    path: Vec<HashText>,
}

/// Computes the root of a tree over these entries. An entry of a transparency log is the SHA-256 of a statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeRoot {
    entries: Vec<ByteString>,
}

impl VerifyInclusion {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let Self { leaf_hash, leaf_index, tree_size, path, root } = self;
        let leaf = LeafHash::from_bytes(*leaf_hash.0.as_bytes());
        let (index, size) = (LeafIndex::new(leaf_index), TreeSize::new(tree_size));
        proven(verify::inclusion(leaf, index, size, &hashes(path), root_hash(&root)))
    }
}

impl VerifyGrowth {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let (older, newer) = (TreeSize::new(self.older_size), TreeSize::new(self.newer_size));
        let (older_root, newer_root) = (root_hash(&self.older_root), root_hash(&self.newer_root));
        proven(verify::consistency(older, newer, older_root, newer_root, &hashes(self.path)))
    }
}

impl TreeRoot {
    pub(crate) fn compute(self) -> Result<Value, CoreError> {
        let leaves: Vec<_> = self.entries.iter().map(|entry| hash_leaf(&entry.0)).collect();
        Ok(json!({ "root": CompactRange::empty().grow(&leaves).root().to_string() }))
    }
}

fn proven(verified: Result<(), ProofError>) -> Result<Value, CoreError> {
    verified.map(|()| json!({})).map_err(|error| CoreError::new("proof-invalid", error))
}

fn hashes(path: Vec<HashText>) -> Vec<Hash> {
    path.into_iter().map(|hash| hash.0).collect()
}

fn root_hash(text: &HashText) -> RootHash {
    RootHash::from_bytes(*text.0.as_bytes())
}
