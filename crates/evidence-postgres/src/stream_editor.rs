//! [`PostgresStreamEditor`]: a command's access to the evidence while gateways use it. It changes states of existing
//! streams only.

use async_trait::async_trait;
use bytes::Bytes;
use evidence::{CommitError, StoreError, StoredStream, StreamSummary};
use sqlx::PgPool;

use crate::error::{commit_error, of_failure};
use crate::{Options, reader, schema, session};

/// A command's access to the evidence in a database.
#[derive(Debug)]
pub struct PostgresStreamEditor {
    pool: PgPool,
}

impl PostgresStreamEditor {
    /// Opens a database that has this program's schema.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached or has another schema.
    pub async fn at(options: &Options) -> Result<Self, StoreError> {
        let mut connection = options.server.connect(&session::READER).await?;
        schema::schema().check(&mut connection, &session::READER).await.map_err(of_failure)?;
        session::close(connection).await;
        Ok(Self { pool: options.server.pool(&session::READER, 1) })
    }
}

#[async_trait]
impl evidence::StreamEditor for PostgresStreamEditor {
    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        reader::streams(&self.pool, names).await
    }

    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        reader::list(&self.pool, after, limit).await
    }

    async fn amend(&self, stream: &str, from: u64, running: &Bytes) -> Result<(), CommitError> {
        let update = sqlx::query(
            "UPDATE stream SET version = version + 1, running = $1 WHERE name = $2 AND version = $3 AND NOT closed",
        );
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let done = update.bind(&running[..]).bind(stream).bind(from).execute(&self.pool).await;
        match done.map_err(commit_error)?.rows_affected() {
            1 => Ok(()),
            _ => Err(CommitError::Conflict(vec![stream.to_owned()])),
        }
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
