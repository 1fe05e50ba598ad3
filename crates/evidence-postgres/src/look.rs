//! [`Look`]: read-only access to the evidence while gateways use it. No instance is registered.

use evidence::{Kept, StoreError, Stored};
use sqlx::PgPool;

use crate::session::Role;
use crate::{Options, reader, schema, session};

/// Read-only access to the evidence.
#[derive(Debug)]
pub struct Look {
    pool: PgPool,
}

impl Look {
    /// Opens a database that has this program's schema.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached or has another schema.
    pub async fn at(options: &Options) -> Result<Self, StoreError> {
        let mut connection = options.server.connect(Role::Reader).await?;
        schema::check(&mut connection).await?;
        session::close(connection).await;
        Ok(Self { pool: options.server.pool(Role::Reader, 1) })
    }

    /// Reads the states of these streams, one answer per name, in order.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub async fn streams(&self, names: &[&str]) -> Result<Vec<Option<Kept>>, StoreError> {
        reader::streams(&self.pool, names).await
    }

    /// Reads up to `limit` records of a stream from sequence number `from` on, in order.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<Stored>, StoreError> {
        reader::records(&self.pool, stream, from, limit).await
    }

    /// Closes the connections.
    pub async fn close(self) {
        self.pool.close().await;
    }
}
