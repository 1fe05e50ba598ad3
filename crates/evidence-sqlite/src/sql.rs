//! Conversions between the tables and the model: numbers and errors.

use std::io;

use durable::LocationError;
use evidence::{CommitError, StoreError};
use merkle::EntryDigest;
use sqlite::{MigrationFailure, SqliteFailure};
use sqlx::Row;
use sqlx::migrate::MigrateError;
use sqlx::sqlite::SqliteRow;

pub(crate) use sqlite::{is_constraint, signed};

/// Converts a row limit.
pub(crate) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Converts a stored number; [`StoreError::Damaged`] if it is negative.
pub(crate) fn unsigned(number: i64) -> Result<u64, StoreError> {
    sqlite::unsigned(number).map_err(|negative| StoreError::Damaged(negative.to_string()))
}

pub(crate) fn number(row: &SqliteRow, column: usize) -> Result<u64, StoreError> {
    unsigned(row.try_get(column).map_err(store_error)?)
}

pub(crate) fn text(row: &SqliteRow, column: usize) -> Result<String, StoreError> {
    row.try_get(column).map_err(store_error)
}

pub(crate) fn blob(row: &SqliteRow, column: usize) -> Result<&[u8], StoreError> {
    row.try_get(column).map_err(store_error)
}

pub(crate) fn digest(row: &SqliteRow, column: usize) -> Result<EntryDigest, StoreError> {
    let bytes = blob(row, column)?;
    let hash = bytes.try_into();
    let hash =
        hash.map_err(|_| StoreError::Damaged(format!("{} bytes are stored as a hash", bytes.len())))?;
    Ok(EntryDigest::from_bytes(hash))
}

pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    let text = error.to_string();
    match SqliteFailure::of(&error) {
        SqliteFailure::Full => StoreError::Full(text),
        SqliteFailure::Damaged => StoreError::Damaged(text),
        SqliteFailure::Constraint => StoreError::Refused(text),
        SqliteFailure::ReadOnly => StoreError::ReadOnly(text),
        SqliteFailure::Io | SqliteFailure::Other => StoreError::Unavailable(text),
    }
}

/// Maps an error before COMMIT, when nothing has been committed.
pub(crate) fn not_committed(error: sqlx::Error) -> CommitError {
    store_error(error).into()
}

pub(crate) fn migration(error: MigrateError) -> StoreError {
    match error.into() {
        MigrationFailure::Refused(text) => StoreError::Refused(text),
        MigrationFailure::Sqlite(error) => store_error(error),
    }
}

/// Maps an error of making the database file.
pub(crate) fn creation_error(error: io::Error) -> StoreError {
    match store_error(error.into()) {
        StoreError::Unavailable(text) => StoreError::Refused(text),
        fault => fault,
    }
}

pub(crate) fn location_error(error: LocationError) -> StoreError {
    match error {
        LocationError::InUse(text) => StoreError::InUse(text),
        LocationError::ReadOnly(text) => StoreError::ReadOnly(text),
        LocationError::Full(text) => StoreError::Full(text),
        LocationError::Unknown(text) => StoreError::Unavailable(text),
        other => StoreError::Refused(other.to_string()),
    }
}
