//! A look at the evidence beside the gateway that keeps it: nothing is written, and the lock file is left alone.
//!
//! Write-ahead logging lets others read while one writes. A database that nobody has open has no write-ahead log, and is read
//! as it lies there, so that not even the files that SQLite puts beside it are made.
//!
//! Not here: tables of an older program; they are what they are until a gateway opens them ([`Sqlite::open`](crate::Sqlite)).

use std::path::Path;

use evidence::{Kept, StoreError, Stored};
use sqlx::sqlite::SqlitePool;

use crate::{connect, reader};

/// Evidence that is only read.
#[derive(Debug)]
pub struct Look {
    read: SqlitePool,
}

impl Look {
    /// At a database file.
    ///
    /// # Errors
    /// When there is none, or it is no database.
    pub async fn at(path: &Path) -> Result<Self, StoreError> {
        if !path.is_file() {
            return Err(StoreError::Refused(format!("there is no {}", path.display())));
        }
        Ok(Self { read: connect::onlooker(path).await? })
    }

    /// The states of these streams, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn streams(&self, names: &[&str]) -> Result<Vec<Option<Kept>>, StoreError> {
        reader::streams(&self.read, names).await
    }

    /// A stream's records from a sequence number on, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<Stored>, StoreError> {
        reader::records(&self.read, stream, from, limit).await
    }

    /// Closes the file.
    pub async fn close(self) {
        self.read.close().await;
    }
}
