//! Cosignatures of witnesses over the log's heads, stored so that every process and every restart can serve them.
//!
//! A witness signs the same head repeatedly, each time with the time at which that head was still the largest it
//! had seen. Only the newest cosignature of a head is kept, as it replaces all that the older ones prove.
//!
//! Not here: whether a cosignature verifies and which witnesses count (`tlog`, `transparency`). To a store a
//! witness is a byte string and a cosignature is a line of text.

use async_trait::async_trait;
use bytes::Bytes;
use merkle::TreeSize;

use crate::StoreError;

/// Storage of cosignatures.
#[async_trait]
pub trait Cosignatures: Send + Sync + 'static {
    /// Stores a cosignature. There is one per witness and head: a newer one replaces it, and an older or equally
    /// old one changes nothing. A size that was never committed is [`StoreError::Refused`].
    async fn keep_cosignature(&self, cosignature: &Cosignature) -> Result<(), StoreError>;

    /// Returns the cosignatures of the head of this size, in order of witness.
    async fn cosignatures(&self, size: TreeSize) -> Result<Vec<Cosignature>, StoreError>;

    /// Returns this witness's cosignature of the largest head that it cosigned.
    async fn newest_cosignature(&self, witness: &[u8]) -> Result<Option<Cosignature>, StoreError>;

    /// Returns up to `limit` cosignatures of heads smaller than `below`, the largest head first, then by witness.
    /// The cosignatures of one head are never split, so the result may be a little longer than `limit`.
    async fn cosigned(&self, below: Option<TreeSize>, limit: usize) -> Result<Vec<Cosignature>, StoreError>;
}

/// One witness's newest cosignature of one head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    /// The head's size.
    pub size: TreeSize,
    /// Name of the witness; an opaque key to the store.
    pub witness: Vec<u8>,
    /// Time of the cosignature by the witness's clock, in Unix seconds.
    pub at: u64,
    /// Signature line of the C2SP signed note.
    pub line: Bytes,
}
