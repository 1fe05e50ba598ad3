//! Conversions of rows.

use bytes::Bytes;
use merkle::EntryDigest;
use sqlite::unsigned;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;

pub(crate) fn text(row: &SqliteRow, column: &str) -> Result<String, StoreError> {
    Ok(row.try_get(column)?)
}

pub(crate) fn optional_text(row: &SqliteRow, column: &str) -> Result<Option<String>, StoreError> {
    Ok(row.try_get(column)?)
}

pub(crate) fn bytes(row: &SqliteRow, column: &str) -> Result<Bytes, StoreError> {
    Ok(row.try_get::<Vec<u8>, _>(column)?.into())
}

pub(crate) fn optional_bytes(row: &SqliteRow, column: &str) -> Result<Option<Bytes>, StoreError> {
    Ok(row.try_get::<Option<Vec<u8>>, _>(column)?.map(Bytes::from))
}

pub(crate) fn number(row: &SqliteRow, column: &str) -> Result<u64, StoreError> {
    Ok(unsigned(row.try_get(column)?)?)
}

pub(crate) fn optional_number(row: &SqliteRow, column: &str) -> Result<Option<u64>, StoreError> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(unsigned).transpose()?)
}

pub(crate) fn digest(row: &SqliteRow, column: &str) -> Result<EntryDigest, StoreError> {
    digest_of(&bytes(row, column)?)
}

pub(crate) fn optional_digest(row: &SqliteRow, column: &str) -> Result<Option<EntryDigest>, StoreError> {
    optional_bytes(row, column)?.map(|bytes| digest_of(&bytes)).transpose()
}

fn digest_of(bytes: &[u8]) -> Result<EntryDigest, StoreError> {
    let hash = bytes.try_into();
    let hash =
        hash.map_err(|_| StoreError::Damaged(format!("{} bytes are stored as a hash", bytes.len())))?;
    Ok(EntryDigest::from_bytes(hash))
}
