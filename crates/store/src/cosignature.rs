//! Cosignatures of witnesses over the log's heads, kept so that every process and every restart can serve them.
//!
//! A witness signs the same head again and again, each time with the time at which that was still the largest it had
//! seen: only the newest of a head is kept, for it says everything that the older ones said.
//!
//! Not here: whether a cosignature verifies and which witnesses count (`tlog`, `transparency`). To a store a witness
//! is a name of bytes and a cosignature is a line.

use async_trait::async_trait;
use bytes::Bytes;
use merkle::TreeSize;

use crate::StoreError;

/// Keeping what witnesses said about heads.
#[async_trait]
pub trait Cosignatures: Send + Sync + 'static {
    /// Keeps a cosignature. One witness has one of each head: it is replaced by a newer one, and an older or equally
    /// old one changes nothing. A size that was never committed is [`StoreError::Refused`].
    async fn keep_cosignature(&self, cosignature: &Cosignature) -> Result<(), StoreError>;

    /// The cosignatures of the head of this size, in order of witness.
    async fn cosignatures(&self, size: TreeSize) -> Result<Vec<Cosignature>, StoreError>;

    /// What this witness said about the largest head that it cosigned.
    async fn newest_cosignature(&self, witness: &[u8]) -> Result<Option<Cosignature>, StoreError>;

    /// Up to `limit` cosignatures of heads smaller than `below`, the largest head first, then by witness. Those of one
    /// head are never split, so the answer may be a little longer than `limit`.
    async fn cosigned(&self, below: Option<TreeSize>, limit: usize) -> Result<Vec<Cosignature>, StoreError>;
}

/// What a witness said about a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    /// The head's size.
    pub size: TreeSize,
    /// Which witness, in the caller's words.
    pub witness: Vec<u8>,
    /// When, by the witness's clock, in Unix seconds.
    pub at: u64,
    /// The signature line of the note.
    pub line: Bytes,
}
