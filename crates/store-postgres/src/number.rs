//! Conversion between the log's unsigned numbers and SQL's signed ones.

use store::StoreError;

/// Converts to a column's value. No position reaches `i64::MAX` (a tree has at most 2^62 leaves), so a number that
/// is cut off matches no row.
pub(crate) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a row limit.
pub(crate) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Converts from a column that never holds a negative number; otherwise [`StoreError::Damaged`].
pub(crate) fn number(column: i64) -> Result<u64, StoreError> {
    u64::try_from(column)
        .map_err(|_| StoreError::Damaged(format!("{column} where no negative number can be")))
}

/// Converts from a column of 32 bytes; otherwise [`StoreError::Damaged`].
pub(crate) fn hash(column: &[u8]) -> Result<[u8; 32], StoreError> {
    column.try_into().map_err(|_| StoreError::Damaged(format!("a hash of {} bytes", column.len())))
}
