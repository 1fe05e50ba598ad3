//! Between the promise's numbers and SQL's, which have a sign.

use evidence::StoreError;
use merkle::EntryDigest;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::error::store_error;

/// As a column holds it. What is cut off is as far off as any time, and names nothing that could be stored.
pub(crate) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A row limit.
pub(crate) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// From a column that never holds a negative number.
pub(crate) fn number(row: &PgRow, column: usize) -> Result<u64, StoreError> {
    let found: i64 = get(row, column)?;
    u64::try_from(found).map_err(|_| StoreError::Damaged(format!("{found} where no negative number can be")))
}

/// From a column of 32 bytes.
pub(crate) fn digest(row: &PgRow, column: usize) -> Result<EntryDigest, StoreError> {
    let bytes: &[u8] = get(row, column)?;
    let hash = bytes.try_into();
    Ok(EntryDigest::from_bytes(
        hash.map_err(|_| StoreError::Damaged(format!("a hash of {} bytes", bytes.len())))?,
    ))
}

/// From a column of any type.
pub(crate) fn get<'r, T>(row: &'r PgRow, column: usize) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    row.try_get(column).map_err(store_error)
}
