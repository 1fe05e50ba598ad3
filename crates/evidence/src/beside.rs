//! What a command may do beside the gateways that keep the evidence, or while none does.

use async_trait::async_trait;
use bytes::Bytes;

use crate::{CommitError, Kept, Listed, StoreError};

/// Evidence that a command looks at, and in which it changes the states of single streams.
///
/// It is no instance: it adds no records, makes no streams, and has no lease. A gateway that holds a stream which was changed here
/// conflicts when it changes it too ([`EvidenceStore::commit`](crate::EvidenceStore::commit)), and sees the change when it loads it.
#[async_trait]
pub trait Beside: Send + Sync {
    /// As [`EvidenceStore::streams`](crate::EvidenceStore::streams).
    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<Kept>>, StoreError>;

    /// As [`EvidenceStore::list`](crate::EvidenceStore::list).
    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed>, StoreError>;

    /// Moves an open stream by one version from `from` on: what changes with every call is this now, and everything else stays.
    /// Once `Ok`, it survives power loss. [`CommitError::Conflict`]: there is no such stream, it is at another version, or closed.
    async fn amend(&self, stream: &str, from: u64, running: &Bytes) -> Result<(), CommitError>;

    /// Lets go of it.
    async fn close(&self);
}
