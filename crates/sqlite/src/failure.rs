//! [`SqliteFailure`]: classes of SQLite's result codes.

use std::io;

/// SQLite's primary result codes (sqlite.org/rescode.html).
mod code {
    pub(super) const READ_ONLY: i32 = 8;
    pub(super) const IO_ERROR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOT_A_DATABASE: i32 = 26;
}

/// Class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqliteFailure {
    /// The disk has no space left (`SQLITE_FULL`).
    Full,
    /// Reading, writing or flushing a file failed (`SQLITE_IOERR`).
    Io,
    /// The file system or the file is read-only (`SQLITE_READONLY`).
    ReadOnly,
    /// The database file is malformed, or a value has another type than was stored.
    Damaged,
    /// The rows violate a constraint or a trigger (`SQLITE_CONSTRAINT`).
    Constraint,
    /// Any other error: a lock that was not released in time, no free connection, a closed pool.
    Other,
}

impl SqliteFailure {
    /// Classifies an error of `sqlx` by its primary result code.
    pub fn of(error: &sqlx::Error) -> Self {
        match primary_code(error) {
            Some(code::FULL) => Self::Full,
            Some(code::IO_ERROR) => Self::Io,
            Some(code::READ_ONLY) => Self::ReadOnly,
            Some(code::CORRUPT | code::NOT_A_DATABASE) => Self::Damaged,
            Some(code::CONSTRAINT) => Self::Constraint,
            None if matches!(error, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
                Self::Damaged
            }
            _ => match error {
                sqlx::Error::Io(error) => Self::of_io(error),
                _ => Self::Other,
            },
        }
    }

    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Io,
        }
    }
}

/// Returns whether the rows violate a constraint or a trigger.
pub fn is_constraint(error: &sqlx::Error) -> bool {
    SqliteFailure::of(error) == SqliteFailure::Constraint
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}
