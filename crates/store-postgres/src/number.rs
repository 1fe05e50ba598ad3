//! Conversion between the log's unsigned numbers and SQL's signed ones.

use merkle::LeafIndex;
use store::StoreError;

pub(crate) use postgres::{column, rows};

/// Converts from a column that never holds a negative number; otherwise [`StoreError::Damaged`].
pub(crate) fn number(column: i64) -> Result<u64, StoreError> {
    u64::try_from(column)
        .map_err(|_| StoreError::Damaged(format!("{column} where no negative number can be")))
}

/// Converts from a column of 32 bytes; otherwise [`StoreError::Damaged`].
pub(crate) fn hash(column: &[u8]) -> Result<[u8; 32], StoreError> {
    column.try_into().map_err(|_| StoreError::Damaged(format!("a hash of {} bytes", column.len())))
}

/// Converts leaf indices for a query.
pub(crate) fn columns(entries: &[LeafIndex]) -> Vec<i64> {
    entries.iter().map(|entry| column(entry.get())).collect()
}

/// Converts stored leaf indices.
pub(crate) fn leaves(columns: Vec<i64>) -> Result<Vec<LeafIndex>, StoreError> {
    columns.into_iter().map(|index| number(index).map(LeafIndex::new)).collect()
}
