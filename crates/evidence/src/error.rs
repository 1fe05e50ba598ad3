//! Errors of an evidence store, and the known effects of a failed call.

use operation_times::ErrorType;

/// Error of a call other than a commit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or answered too late. The call may be repeated later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// No space is left. The call may be repeated once there is space.
    #[error("the database has no space left: {0}")]
    Full(String),
    /// The file system is read-only. The call may be repeated once it can be written.
    #[error("the file system of the database is read-only: {0}")]
    ReadOnly(String),
    /// Another process uses the database, which only one process may use.
    #[error("{0}")]
    InUse(String),
    /// The database, or the call, must not be used in this way; the text says what to change.
    #[error("{0}")]
    Refused(String),
    /// Stored data contradicts itself.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

/// Reason why a commit did not succeed, with its known effects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Names of the streams that are not as the changes require, sorted and each once. Nothing was changed: load
    /// these streams, and decide again.
    #[error("other changes came first: {}", .0.join(", "))]
    Conflict(Vec<String>),
    /// No space is left. Nothing was changed.
    #[error("the database has no space left: {0}")]
    Full(String),
    /// The commit may have happened. Call [`happened`](crate::EvidenceStore::happened) before anything is answered
    /// or sent again.
    #[error("the commit's outcome is unknown: {0}")]
    MayHaveHappened(String),
    /// The commit failed for another reason. Nothing was changed.
    #[error(transparent)]
    Failed(StoreError),
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(why) => Self::Full(why),
            other => Self::Failed(other),
        }
    }
}

impl ErrorType for StoreError {
    fn error_type(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Full(_) => "full",
            Self::ReadOnly(_) => "read_only",
            Self::InUse(_) => "in_use",
            Self::Refused(_) => "refused",
            Self::Damaged(_) => "damaged",
        }
    }
}

impl ErrorType for CommitError {
    fn error_type(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::Full(_) => "full",
            Self::MayHaveHappened(_) => "unknown",
            Self::Failed(error) => error.error_type(),
        }
    }
}
