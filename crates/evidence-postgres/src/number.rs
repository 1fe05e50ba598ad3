//! Conversion between the trait's unsigned numbers and SQL's signed ones.

use evidence::StoreError;
use merkle::EntryDigest;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::error::store_error;

pub(crate) use postgres::{column, rows};

/// Reads a column that never holds a negative number; otherwise [`StoreError::Damaged`].
pub(crate) fn number(row: &PgRow, column: usize) -> Result<u64, StoreError> {
    let found: i64 = get(row, column)?;
    u64::try_from(found).map_err(|_| StoreError::Damaged(format!("{found} where no negative number can be")))
}

/// Reads a column of 32 bytes; otherwise [`StoreError::Damaged`].
pub(crate) fn digest(row: &PgRow, column: usize) -> Result<EntryDigest, StoreError> {
    let bytes: &[u8] = get(row, column)?;
    let hash = bytes.try_into();
    Ok(EntryDigest::from_bytes(
        hash.map_err(|_| StoreError::Damaged(format!("a hash of {} bytes", bytes.len())))?,
    ))
}

/// Reads a column of any type.
pub(crate) fn get<'r, T>(row: &'r PgRow, column: usize) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    row.try_get(column).map_err(store_error)
}
