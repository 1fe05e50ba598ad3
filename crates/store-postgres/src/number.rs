//! Between the log's numbers and SQL's, which have a sign.

use store::StoreError;

/// As a column holds it. No position reaches `i64::MAX` (a tree has at most 2^62 leaves), so what
/// is cut off names nothing that could be stored.
pub(crate) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A row limit.
pub(crate) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// From a column that never holds a negative number.
pub(crate) fn number(column: i64) -> Result<u64, StoreError> {
    u64::try_from(column)
        .map_err(|_| StoreError::Damaged(format!("{column} where no negative number can be")))
}

/// From a column of 32 bytes.
pub(crate) fn hash(column: &[u8]) -> Result<[u8; 32], StoreError> {
    column.try_into().map_err(|_| StoreError::Damaged(format!("a hash of {} bytes", column.len())))
}
