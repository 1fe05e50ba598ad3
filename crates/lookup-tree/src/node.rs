//! Hashes of a run's tree: buckets and inner nodes.

use merkle::Hash;
use sha2::{Digest, Sha256};

use crate::posting::Posting;
use crate::prefix::PostingPrefix;

/// Prefix byte of the input of a bucket's hash.
const BUCKET: u8 = 0x02;
/// Prefix byte of the input of an inner node's hash.
const INNER: u8 = 0x03;

/// An inner node, as it is stored for the proofs of a large run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerNode {
    /// The bits that all postings below the node share.
    pub prefix: PostingPrefix,
    /// The number of postings below the node.
    pub postings: u64,
    /// Hash of the child whose postings go on with a zero bit.
    pub left: Hash,
    /// Hash of the child whose postings go on with a one bit.
    pub right: Hash,
}

impl InnerNode {
    /// Hash of the node.
    pub fn hash(&self) -> Hash {
        hash_inner(&self.prefix, self.left, self.right)
    }
}

/// Computes the hash of a bucket: `SHA-256(0x02 || u16 count || postings)`. The postings are in order, at most
/// [`MAX_BUCKET_POSTINGS`](crate::limits::MAX_BUCKET_POSTINGS).
pub(crate) fn hash_bucket(postings: &[Posting]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([BUCKET]);
    hasher.update((postings.len() as u16).to_be_bytes());
    for posting in postings {
        hasher.update(posting.to_bytes());
    }
    Hash::from_bytes(hasher.finalize().into())
}

/// Computes the hash of an inner node: `SHA-256(0x03 || u8 depth || 24 bytes of the prefix || left || right)`.
pub(crate) fn hash_inner(prefix: &PostingPrefix, left: Hash, right: Hash) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([INNER, prefix.depth()]);
    hasher.update(prefix.first().to_bytes());
    hasher.update(left.as_bytes());
    hasher.update(right.as_bytes());
    Hash::from_bytes(hasher.finalize().into())
}
