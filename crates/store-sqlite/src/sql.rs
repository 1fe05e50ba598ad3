//! What the tables and the model say differently: numbers, errors, many rows at once.

use bytes::Bytes;
use merkle::EntryDigest;
use sqlx::migrate::MigrateError;
use sqlx::query_builder::Separated;
use sqlx::{QueryBuilder, SqliteConnection};
use store::StoreError;

/// Rows that one statement inserts.
const ROWS: usize = 64;

/// SQLite's primary result codes that mean something to us.
mod code {
    pub(super) const IO_ERROR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOT_A_DATABASE: i32 = 26;
}

/// A number as SQLite has it. A larger one matches no row.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that we stored.
pub(crate) fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number)
        .map_err(|_| StoreError::Damaged(format!("{number} is stored where no number is negative")))
}

/// A hash that we stored.
pub(crate) fn hash(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes.try_into().map_err(|_| StoreError::Damaged(format!("{} bytes are stored as a hash", bytes.len())))
}

pub(crate) fn digest(bytes: &[u8]) -> Result<EntryDigest, StoreError> {
    hash(bytes).map(EntryDigest::from_bytes)
}

/// The key of a digest in `seen`.
pub(crate) fn seen_key(digest: &EntryDigest) -> &[u8] {
    &digest.as_bytes()[..16]
}

pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    let text = error.to_string();
    match primary_code(&error) {
        Some(code::CORRUPT | code::NOT_A_DATABASE) => StoreError::Damaged(text),
        Some(code::CONSTRAINT) => StoreError::Refused(text),
        None if matches!(error, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
            StoreError::Damaged(text)
        }
        _ => StoreError::Unavailable(text),
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

/// Whether the rows break a constraint or a trigger.
pub(crate) fn is_constraint(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(code::CONSTRAINT)
}

/// Whether what the connection believes may no longer be what the disk holds.
pub(crate) fn leaves_doubt(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(code::IO_ERROR | code::CORRUPT | code::NOT_A_DATABASE))
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

/// Inserts rows, many with each statement; `into` ends with the list of columns.
pub(crate) async fn insert<T>(
    connection: &mut SqliteConnection,
    into: &'static str,
    rows: &[T],
    bind: impl Fn(&mut Separated<'_, sqlx::Sqlite, &'static str>, &T),
) -> Result<(), sqlx::Error> {
    for chunk in rows.chunks(ROWS) {
        let mut query = QueryBuilder::new(into);
        query.push_values(chunk, |mut row, value| bind(&mut row, value));
        // Only the full chunks have a text worth remembering.
        query.build().persistent(chunk.len() == ROWS).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(crate) fn to_bytes(bytes: Vec<u8>) -> Bytes {
    Bytes::from(bytes)
}
