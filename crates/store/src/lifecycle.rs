//! The right to sequence, the end of a log, and the state of its server.

use async_trait::async_trait;

use crate::{Head, SequencerStore, State, StoreError};

/// Lifecycle of a log in one database: leading, freezing and closing.
#[async_trait]
pub trait Lifecycle: Send + Sync + 'static {
    /// Asks for the right to *try* to sequence. `None`: another process holds it now.
    ///
    /// The lease only avoids contention. Correctness rests on the epoch, which fences all but one process.
    async fn lease(&self, holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError>;

    /// Returns a second handle on the log for the sequencer, whose look-ups do not wait for public reads and use the
    /// connections that suit them best; `None` if the implementation does not need one.
    fn for_sequencing(&self) -> Option<std::sync::Arc<dyn SequencerStore>> {
        None
    }

    /// Waits for running calls and closes every connection. Later calls fail.
    async fn close(&self) {}

    /// Reads the [`State`] of the log: growing, frozen, or being filled.
    async fn state(&self) -> Result<State, StoreError>;

    /// Freezes the log durably and raises the epoch in the same transaction, so that the returned head is the last
    /// one. Waits for a commit in progress and so sees it.
    ///
    /// From then on a commit is [`NotCommitted`](crate::CommitError::NotCommitted) because of
    /// [`StoreError::Frozen`], and a take-over and an inbox item are refused likewise. Freezing a frozen log
    /// changes nothing; a log that is being filled is [`StoreError::Refused`].
    async fn freeze(&self, holder: &str, at: u64) -> Result<Head, StoreError>;
}

/// Checks of the database server.
#[async_trait]
pub trait ServerChecks: Send + Sync + 'static {
    /// Refuses a database whose settings can lose an acknowledged commit (`fsync` off and the like).
    async fn check_durability(&self) -> Result<(), StoreError>;

    /// Reads the wall clock of the database server, as time since 1970. `None` for a database on this machine,
    /// which has the same clock as the process.
    async fn clock(&self) -> Result<Option<std::time::Duration>, StoreError> {
        Ok(None)
    }
}

/// Right to try to sequence, until dropped or lost.
#[async_trait]
pub trait Lease: Send + Sync {
    /// Resolves once the right is lost: the connection died, the lock was stolen, or the server restarted.
    async fn lost(&mut self);
}
