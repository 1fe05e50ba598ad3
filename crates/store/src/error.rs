//! Errors of the storage traits.

use operation_times::ErrorType;

/// Failure of the storage under a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageFault {
    /// No space is left.
    #[error("the disk is full")]
    Full,
    /// Reading, writing or flushing failed.
    #[error("the disk fails with I/O errors")]
    Io,
    /// The file system or the database server accepts no writes.
    #[error("the storage is read-only")]
    ReadOnly,
}

/// Error of a read or of a write other than [`LogWriter::commit`](crate::LogWriter::commit). Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or answered too late. The call may be repeated later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The storage under the database failed, with the database's error text. The call may be repeated once the
    /// storage works.
    #[error("{0}: {1}")]
    Storage(StorageFault, String),
    /// The log takes no more entries, for ever.
    #[error("the log is frozen: no more entries are added")]
    Frozen,
    /// Another process uses the database, which only one process may use.
    #[error("{0}")]
    InUse(String),
    /// There is no database, or no log in it.
    #[error("{0}")]
    NoLog(String),
    /// The database must not be used in its present state; the text says what to change.
    #[error("{0}")]
    Refused(String),
    /// Stored data contradicts itself.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

/// Reason why a commit did not succeed, with its known effects.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another epoch, size or root is in force. Nothing was changed; the process must not continue to lead.
    #[error("fenced: the head is no longer the one this process holds")]
    Fenced,
    /// A digest of the batch is in the table `seen`. Nothing was changed: look up the digests, drop the known
    /// entries and try once more.
    #[error("an entry of the batch is in the log already")]
    AlreadySeen,
    /// A guard of the batch is taken. Nothing was changed.
    #[error("a guard of the batch is taken")]
    GuardTaken,
    /// The commit failed for another reason. Nothing was changed.
    #[error(transparent)]
    NotCommitted(StoreError),
    /// The commit may have happened. Settle it with [`take_over`](crate::LogWriter::take_over) before anything is
    /// signed.
    #[error("the commit's outcome is unknown: {0}")]
    Unknown(String),
}

impl CommitError {
    /// Returns whether the log has an entry or a claim of the batch: no failure, but the answer to a question.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::AlreadySeen | Self::GuardTaken)
    }
}

impl ErrorType for StoreError {
    fn error_type(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Storage(StorageFault::Full, _) => "full",
            Self::Storage(StorageFault::Io, _) => "io",
            Self::Storage(StorageFault::ReadOnly, _) => "read_only",
            Self::Frozen => "frozen",
            Self::InUse(_) => "in_use",
            Self::NoLog(_) => "no_log",
            Self::Refused(_) => "refused",
            Self::Damaged(_) => "damaged",
        }
    }
}

impl ErrorType for CommitError {
    fn error_type(&self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::AlreadySeen => "already_seen",
            Self::GuardTaken => "guard_taken",
            Self::NotCommitted(error) => error.error_type(),
            Self::Unknown(_) => "unknown",
        }
    }
}
