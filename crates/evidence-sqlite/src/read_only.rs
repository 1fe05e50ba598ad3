//! [`SqliteReader`]: read-only access to the evidence while a gateway uses it. The lock file is not taken.
//!
//! Write-ahead logging lets others read while one process writes. A database that no process has open has no
//! write-ahead log, and is read as immutable, so that SQLite does not create its additional files.
//!
//! Not here: migrating the tables of an older program; a gateway does that when it opens them
//! ([`Sqlite::open`](crate::Sqlite)).

use std::path::Path;

use evidence::{StoreError, StoredRecord, StoredStream};
use sqlx::sqlite::SqlitePool;

use crate::{connect, reader};

/// Read-only access to the evidence.
#[derive(Debug)]
pub struct SqliteReader {
    read: SqlitePool,
}

impl SqliteReader {
    /// Opens a database file.
    ///
    /// # Errors
    ///
    /// If there is no file, or it is not a database.
    pub async fn at(path: &Path) -> Result<Self, StoreError> {
        if !path.is_file() {
            return Err(StoreError::Refused(format!("there is no {}", path.display())));
        }
        Ok(Self { read: connect::read_only(path).await? })
    }

    /// Reads the states of these streams, one answer per name, in order.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        reader::streams(&self.read, names).await
    }

    /// Reads up to `limit` records of a stream from sequence number `from` on, in order.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub async fn records(
        &self,
        stream: &str,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        reader::records(&self.read, stream, from, limit).await
    }

    /// Closes the file.
    pub async fn close(self) {
        self.read.close().await;
    }
}
