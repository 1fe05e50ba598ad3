//! [`StreamEditor`]: access to the evidence for a command, while gateways use it or while none does.

use async_trait::async_trait;
use bytes::Bytes;

use crate::{CommitError, StoreError, StoredStream, StreamSummary};

/// Access of a command to the evidence: it reads, and changes the states of single streams.
///
/// It is not an instance: it adds no records, creates no streams, and has no lease. A gateway that holds a stream
/// which was changed here conflicts when it changes that stream too
/// ([`EvidenceStore::commit`](crate::EvidenceStore::commit)), and sees the change when it loads the stream.
#[async_trait]
pub trait StreamEditor: Send + Sync {
    /// Reads streams as [`EvidenceStore::streams`](crate::EvidenceStore::streams) does.
    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError>;

    /// Lists streams as [`EvidenceStore::list`](crate::EvidenceStore::list) does.
    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError>;

    /// Moves an open stream by one version from `from` on: replaces [`StoredStream::running`] and leaves all other
    /// fields unchanged. Once `Ok`, the change survives power loss. [`CommitError::Conflict`]: there is no such stream,
    /// it is at another version, or it is closed.
    async fn amend(&self, stream: &str, from: u64, running: &Bytes) -> Result<(), CommitError>;

    /// Closes the connections.
    async fn close(&self);
}
