//! [`SqliteStreamEditor`]: a command's access to the evidence while a gateway uses it. It changes states of existing
//! streams only.
//!
//! The lock file stays with the gateway, whose numbers of streams and records and whose counts are in its memory:
//! a command creates no streams or records. SQLite's own locks separate the two, each for the time of a commit.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use evidence::{CommitError, StoreError, StoredStream, StreamSummary};
use sqlite::{Repair, SqliteFailure};
use sqlx::sqlite::SqlitePool;

use crate::sql::{not_committed, signed};
use crate::{connect, reader};

/// A command's access to the evidence in a file.
#[derive(Debug)]
pub struct SqliteStreamEditor {
    pool: SqlitePool,
}

impl SqliteStreamEditor {
    /// Opens a database file.
    ///
    /// # Errors
    ///
    /// If there is no file, or it is not a database.
    pub async fn at(path: &Path) -> Result<Self, StoreError> {
        if !path.is_file() {
            return Err(StoreError::Refused(format!("there is no {}", path.display())));
        }
        Ok(Self { pool: connect::editor(path).await? })
    }
}

#[async_trait]
impl evidence::StreamEditor for SqliteStreamEditor {
    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        reader::streams(&self.pool, names).await
    }

    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        reader::list(&self.pool, after, limit).await
    }

    async fn amend(&self, stream: &str, from: u64, running: &Bytes) -> Result<(), CommitError> {
        let update = sqlx::query(
            "UPDATE stream SET version = version + 1, running = ? WHERE name = ? AND version = ? AND closed = 0",
        );
        let update = update.bind(&running[..]).bind(stream).bind(signed(from));
        match update.execute(&self.pool).await {
            Ok(done) if done.rows_affected() == 1 => Ok(()),
            Ok(_) => Err(CommitError::Conflict(vec![stream.to_owned()])),
            Err(error) if Repair::after(SqliteFailure::of(&error)) == Repair::Settle => {
                Err(CommitError::MayHaveHappened(error.to_string()))
            }
            Err(error) => Err(not_committed(error)),
        }
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
