//! Errors of reading a database.

/// Error of [`read`](crate::read()).
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file has none of the known tables.
    #[error("it has neither the tables of OpenCode (session, message, part) nor Cursor's (cursorDiskKV)")]
    UnknownTables,
    /// The rows are larger than a source may be.
    #[error("its sessions have {bytes} bytes, more than {limit}")]
    TooLarge {
        /// Size of the rows.
        bytes: u64,
        /// The limit, [`SOURCE_BYTES`](translators::limits::SOURCE_BYTES).
        limit: u64,
    },
    /// SQLite cannot read the file.
    #[error("SQLite: {0}")]
    Sqlite(#[from] sqlx::Error),
    /// No thread or runtime could be started.
    #[error("cannot start reading: {0}")]
    Start(#[from] std::io::Error),
}
