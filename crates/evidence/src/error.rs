//! What goes wrong, and what is known about it.

/// Why a call other than a commit did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or answered too late: try again later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// There is no space left: make some, and try again.
    #[error("the database has no space left: {0}")]
    Full(String),
    /// Another process has the database, and there can only be one.
    #[error("{0}")]
    InUse(String),
    /// The database must not be used as it is, or not so; the text says what to change.
    #[error("{0}")]
    Refused(String),
    /// Stored data contradicts itself.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

/// Why a commit did not succeed, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// These streams are not as the changes say, in order of name and each once. Nothing was changed: load them, and
    /// decide again.
    #[error("other changes came first: {}", .0.join(", "))]
    Conflict(Vec<String>),
    /// There is no space left. Nothing was changed.
    #[error("the database has no space left: {0}")]
    Full(String),
    /// It may have happened. Ask [`happened`](crate::EvidenceStore::happened) before anything is said or sent again.
    #[error("the commit's outcome is unknown: {0}")]
    MayHaveHappened(String),
    /// Nothing was changed, for a reason of the database's own.
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
