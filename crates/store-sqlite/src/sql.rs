//! Conversions between the tables and the model: numbers and errors.

use bytes::Bytes;
use merkle::EntryDigest;
use sqlite::{MigrationFailure, SqliteFailure};
use sqlx::migrate::MigrateError;
use store::{StorageFault, StoreError};

pub(crate) use sqlite::{is_constraint, signed};

/// Converts a stored number; [`StoreError::Damaged`] if it is negative.
pub(crate) fn unsigned(number: i64) -> Result<u64, StoreError> {
    sqlite::unsigned(number).map_err(|negative| StoreError::Damaged(negative.to_string()))
}

/// Converts a stored hash; [`StoreError::Damaged`] if it has not 32 bytes.
pub(crate) fn hash(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes.try_into().map_err(|_| StoreError::Damaged(format!("{} bytes are stored as a hash", bytes.len())))
}

pub(crate) fn digest(bytes: &[u8]) -> Result<EntryDigest, StoreError> {
    hash(bytes).map(EntryDigest::from_bytes)
}

/// Key of a digest in the table `seen`: its first 16 bytes.
pub(crate) fn seen_key(digest: &EntryDigest) -> &[u8] {
    &digest.as_bytes()[..16]
}

pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    let text = error.to_string();
    match SqliteFailure::of(&error) {
        SqliteFailure::Full => StoreError::Storage(StorageFault::Full, text),
        SqliteFailure::Io => StoreError::Storage(StorageFault::Io, text),
        SqliteFailure::ReadOnly => StoreError::Storage(StorageFault::ReadOnly, text),
        SqliteFailure::Damaged => StoreError::Damaged(text),
        SqliteFailure::Constraint => StoreError::Refused(text),
        SqliteFailure::Other => StoreError::Unavailable(text),
    }
}

pub(crate) fn migration(error: MigrateError) -> StoreError {
    match error.into() {
        MigrationFailure::Refused(text) => StoreError::Refused(text),
        MigrationFailure::Sqlite(error) => store_error(error),
    }
}

pub(crate) fn to_bytes(bytes: Vec<u8>) -> Bytes {
    Bytes::from(bytes)
}
