//! Conversions between the tables and the model: numbers, errors, portions of rows, look-ups of many keys.

use durable::LocationError;
use evidence::{CommitError, StoreError};
use merkle::EntryDigest;
use sqlite::{MigrationFailure, SqliteFailure};
use sqlx::migrate::MigrateError;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row, Sqlite, SqliteExecutor};

use crate::limits;

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
        SqliteFailure::Io | SqliteFailure::ReadOnly | SqliteFailure::Other => StoreError::Unavailable(text),
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

pub(crate) fn place(error: LocationError) -> StoreError {
    match error {
        LocationError::InUse(text) => StoreError::InUse(text),
        LocationError::Unknown(text) => StoreError::Unavailable(text),
        other => StoreError::Refused(other.to_string()),
    }
}

/// Splits rows into portions of powers of two, at most [`limits::ROWS`], so that few different statements are
/// prepared.
pub(crate) fn portions<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let size = rest.len().min(limits::ROWS).checked_ilog2().map(|power| 1 << power)?;
        let (portion, left) = rest.split_at(size);
        rest = left;
        Some(portion)
    })
}

/// Runs `before`, which ends with `IN`, over any number of keys.
pub(crate) async fn with_keys<'q, K>(
    executor: impl SqliteExecutor<'q> + Copy,
    before: &str,
    keys: &[K],
) -> Result<Vec<SqliteRow>, StoreError>
where
    K: for<'k> sqlx::Encode<'k, Sqlite> + sqlx::Type<Sqlite> + Copy + Send,
{
    let mut found = Vec::new();
    for chunk in keys.chunks(limits::KEYS) {
        // Few statements are cached: the remaining placeholders repeat the last key.
        let places = chunk.len().next_power_of_two();
        let text = format!("{before} ({})", vec!["?"; places].join(","));
        let query = (0..places).fold(sqlx::query(AssertSqlSafe(text)), |query, place| {
            query.bind(chunk[place.min(chunk.len() - 1)])
        });
        found.extend(query.fetch_all(executor).await.map_err(store_error)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_into_powers_of_two() {
        let sizes = |rows: usize| portions(&vec![0; rows]).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(0), Vec::<usize>::new());
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(50), [32, 16, 2]);
        assert_eq!(sizes(200), [64, 64, 64, 8]);
    }
}
