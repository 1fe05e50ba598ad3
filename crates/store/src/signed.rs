//! Signatures over committed heads.

use async_trait::async_trait;
use merkle::TreeSize;

use crate::{HeadSignature, SignatureKind, SignedHead, StoreError};

/// Storage of the log's own signatures over its heads.
#[async_trait]
pub trait SignatureStore: Send + Sync + 'static {
    /// Stores signatures over committed heads, all of them or none. A second signature for the same (size, kind,
    /// kid) is ignored: the first stays. A size that was never committed is [`StoreError::Refused`].
    async fn keep_signatures(&self, signatures: &[HeadSignature]) -> Result<(), StoreError>;

    /// Stores one signature, as [`keep_signatures`](Self::keep_signatures) does.
    async fn keep_signature(&self, signature: &HeadSignature) -> Result<(), StoreError> {
        self.keep_signatures(std::slice::from_ref(signature)).await
    }

    /// Reads the signature of this kind by this key over the head of this size.
    async fn signature(
        &self,
        size: TreeSize,
        kind: SignatureKind,
        kid: &[u8],
    ) -> Result<Option<HeadSignature>, StoreError>;

    /// Reads the newest head that has a signature of this kind, with that signature.
    async fn newest_signed(&self, kind: SignatureKind) -> Result<Option<SignedHead>, StoreError>;

    /// Reads up to `limit` signatures over heads larger than `after`, by size, then kind, then kid. The signatures
    /// of one head are never split, so the result may be a little longer than `limit`.
    async fn signatures(
        &self,
        after: Option<TreeSize>,
        limit: usize,
    ) -> Result<Vec<HeadSignature>, StoreError>;
}
