//! Hashes of a run's tree: buckets and inner nodes.

use merkle::Hash;
use sha2::{Digest, Sha256};

use crate::posting::Posting;
use crate::prefix::PostingPrefix;

/// Prefix byte of the input of a bucket's hash.
const BUCKET: u8 = 0x02;
/// Prefix byte of the input of an inner node's hash.
const INNER: u8 = 0x03;
/// Length in bytes of an encoded node without its prefix.
pub const NODE_BYTES: usize = 8 + 32 + 32;

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

    /// Returns the node without its prefix: the number of postings with its most significant byte first, then the hashes of
    /// the left and of the right child. A store keeps it under the prefix.
    pub fn to_bytes(&self) -> [u8; NODE_BYTES] {
        let mut bytes = [0; NODE_BYTES];
        bytes[..8].copy_from_slice(&self.postings.to_be_bytes());
        bytes[8..40].copy_from_slice(self.left.as_bytes());
        bytes[40..].copy_from_slice(self.right.as_bytes());
        bytes
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(prefix: PostingPrefix, bytes: &[u8; NODE_BYTES]) -> Self {
        let (mut postings, mut left, mut right) = ([0; 8], [0; 32], [0; 32]);
        postings.copy_from_slice(&bytes[..8]);
        left.copy_from_slice(&bytes[8..40]);
        right.copy_from_slice(&bytes[40..]);
        let (left, right) = (Hash::from_bytes(left), Hash::from_bytes(right));
        Self { prefix, postings: u64::from_be_bytes(postings), left, right }
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
