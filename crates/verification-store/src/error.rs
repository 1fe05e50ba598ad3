//! Errors of the store.

use std::io;

use durable::LocationError;
use operation_times::ErrorType;
use sqlite::{MigrationFailure, SqliteFailure};
use sqlx::migrate::MigrateError;

/// Error of the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process has the database.
    #[error("another process has the database: {0}")]
    InUse(String),
    /// The change contradicts what is stored, or the database cannot be used as it is.
    #[error("the database refuses this: {0}")]
    Refused(String),
    /// The database does not answer; a later attempt may succeed.
    #[error("the database cannot be used at the moment: {0}")]
    Unavailable(String),
    /// No space is left; a later attempt may succeed.
    #[error("the database has no space left: {0}")]
    Full(String),
    /// The file system is read-only; a later attempt may succeed.
    #[error("the file system of the database is read-only: {0}")]
    ReadOnly(String),
    /// The stored data is malformed.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

/// Classes of temporary errors.
const FULL: &str = "full";
const READ_ONLY: &str = "read_only";
const UNAVAILABLE: &str = "unavailable";

impl ErrorType for StoreError {
    fn error_type(&self) -> &'static str {
        match self {
            Self::InUse(_) => "in_use",
            Self::Refused(_) => "refused",
            Self::Unavailable(_) => UNAVAILABLE,
            Self::Full(_) => FULL,
            Self::ReadOnly(_) => READ_ONLY,
            Self::Damaged(_) => "damaged",
        }
    }
}

impl StoreError {
    /// Maps an error of making the database file.
    pub(crate) fn not_made(error: io::Error) -> Self {
        match sqlx::Error::from(error).into() {
            Self::Unavailable(text) => Self::Refused(text),
            fault => fault,
        }
    }

    /// Returns in words the fault of the storage that a class of errors stands for; `None` for a class that is not temporary
    /// ([`is_temporary`](Self::is_temporary)).
    pub fn temporary_fault(error_type: &str) -> Option<&'static str> {
        match error_type {
            FULL => Some("it has no space left"),
            READ_ONLY => Some("its file system is read-only"),
            UNAVAILABLE => Some("it cannot be used at the moment"),
            _ => None,
        }
    }

    /// Returns whether a later attempt may succeed, as nothing is wrong with the data or the attempt.
    pub fn is_temporary(&self) -> bool {
        Self::temporary_fault(self.error_type()).is_some()
    }
}

/// Error inside of a transaction, which then changes nothing.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The change contradicts what is stored.
    Contradiction(&'static str),
    /// SQLite failed.
    Sqlite(sqlx::Error),
}

impl From<sqlx::Error> for WriteError {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let text = error.to_string();
        match SqliteFailure::of(&error) {
            SqliteFailure::Damaged => Self::Damaged(text),
            SqliteFailure::Constraint => Self::Refused(text),
            SqliteFailure::Full => Self::Full(text),
            SqliteFailure::ReadOnly => Self::ReadOnly(text),
            SqliteFailure::Io | SqliteFailure::Other => Self::Unavailable(text),
        }
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error.into() {
            MigrationFailure::Refused(text) => Self::Refused(text),
            MigrationFailure::Sqlite(error) => error.into(),
        }
    }
}

impl From<LocationError> for StoreError {
    fn from(error: LocationError) -> Self {
        match error {
            LocationError::InUse(text) => Self::InUse(text),
            LocationError::ReadOnly(text) => Self::ReadOnly(text),
            LocationError::Full(text) => Self::Full(text),
            LocationError::Unknown(text) => Self::Unavailable(text),
            other => Self::Refused(other.to_string()),
        }
    }
}

impl From<sqlite::NegativeNumber> for StoreError {
    fn from(error: sqlite::NegativeNumber) -> Self {
        Self::Damaged(error.to_string())
    }
}
