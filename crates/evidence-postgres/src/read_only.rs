//! [`PostgresReader`]: read-only access to the evidence while gateways use it. No instance is registered.

use evidence::{StoreError, StoredRecord, StoredStream};
use sqlx::PgPool;

use crate::error::of_failure;
use crate::{Options, reader, schema, session};

/// Read-only access to the evidence.
#[derive(Debug)]
pub struct PostgresReader {
    pool: PgPool,
}

impl PostgresReader {
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

    /// Reads the states of these streams, one answer per name, in order.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        reader::streams(&self.pool, names).await
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
        reader::records(&self.pool, stream, from, limit).await
    }

    /// Closes the connections.
    pub async fn close(self) {
        self.pool.close().await;
    }
}
