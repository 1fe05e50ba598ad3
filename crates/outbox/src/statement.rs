//! The storage of the outbox, as the delivery uses it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::EntryDigest;

/// A clock, in Unix seconds.
pub type UnixSeconds = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Error of an outbox's storage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StorageError(pub String);

/// A statement that waits for its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingStatement {
    /// The entry that the statement will be.
    pub id: EntryDigest,
    /// Name of the stream.
    pub stream: String,
    /// Position in the stream.
    pub seq: u64,
    /// The bytes to send.
    pub statement: Bytes,
}

/// A statement that the log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredStatement {
    /// The statement as it was sent.
    pub sent: PendingStatement,
    /// Index of its leaf, if the receipt states one.
    pub leaf_index: Option<u64>,
    /// The receipt of the log.
    pub receipt: Bytes,
}

/// The refusal of a statement by a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRefusal {
    /// The rule of the log's policy that refuses the statement, if the log names one.
    pub rule: Option<String>,
    /// The problem details of the response.
    pub text: String,
}

/// A statement that the log refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSubmission {
    /// The statement as it was sent.
    pub sent: PendingStatement,
    /// The refusal.
    pub refusal: LogRefusal,
}

/// Statements that wait for their delivery, in a database.
#[async_trait]
pub trait Outbox: Send + Sync + 'static {
    /// Reads up to `limit` statements that may be sent now, in the order in which they are to be sent, without the refused
    /// ones. Each is durable.
    async fn pending(&self, limit: usize) -> Result<Vec<PendingStatement>, StorageError>;

    /// Removes statements from the outbox, and stores their receipts. A crash may undo this: a statement is delivered at
    /// least once.
    async fn delivered(&self, delivered: &[DeliveredStatement]) -> Result<(), StorageError>;

    /// Returns whether a refusal is permanent. One that is not is followed by further attempts, and by no other
    /// consequence.
    async fn is_permanent(&self, refused: &RefusedSubmission) -> Result<bool, StorageError>;

    /// Marks statements that the log refuses permanently. They are not pending until
    /// [`retry_refused`](Self::retry_refused).
    async fn refused(&self, refused: &[RefusedSubmission]) -> Result<(), StorageError>;

    /// Makes refused statements pending again, whose cause of refusal may be gone; returns their number.
    async fn retry_refused(&self) -> Result<u64, StorageError>;

    /// Notes that the log accepts statements.
    fn log_answers(&self);

    /// Notes that nothing could be delivered, with the reason.
    fn log_is_silent(&self, why: &str);
}
