//! Conversions between the tables and the model: numbers, errors, inserts of many rows.

use bytes::Bytes;
use merkle::EntryDigest;
use sqlite::SqliteFailure;
use sqlx::migrate::MigrateError;
use sqlx::query_builder::Separated;
use sqlx::{QueryBuilder, SqliteConnection};
use store::{StorageFault, StoreError};

pub(crate) use sqlite::is_constraint;

/// Number of rows that one statement inserts.
const ROWS: usize = 64;

/// Converts to SQLite's signed integer. A number that does not fit matches no row.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a stored number; [`StoreError::Damaged`] if it is negative.
pub(crate) fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number)
        .map_err(|_| StoreError::Damaged(format!("{number} is stored where no number is negative")))
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
    match error {
        MigrateError::VersionMissing(version) => StoreError::Refused(format!(
            "the database has tables of version {version}, which this version of the program does not know"
        )),
        MigrateError::VersionMismatch(version) => StoreError::Refused(format!(
            "version {version} of the tables is not the one this program would make"
        )),
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => store_error(error),
        other => StoreError::Refused(other.to_string()),
    }
}

/// Inserts rows, [`ROWS`] with each statement; `into` ends with the list of columns.
pub(crate) async fn insert<T>(
    connection: &mut SqliteConnection,
    into: &'static str,
    rows: &[T],
    bind: impl Fn(&mut Separated<'_, sqlx::Sqlite, &'static str>, &T),
) -> Result<(), sqlx::Error> {
    for chunk in rows.chunks(ROWS) {
        let mut query = QueryBuilder::new(into);
        query.push_values(chunk, |mut row, value| bind(&mut row, value));
        // Only the statement for full chunks is used often enough to stay prepared.
        query.build().persistent(chunk.len() == ROWS).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(crate) fn to_bytes(bytes: Vec<u8>) -> Bytes {
    Bytes::from(bytes)
}
