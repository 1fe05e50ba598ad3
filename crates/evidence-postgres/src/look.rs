//! A look at the evidence beside the gateways that keep it: no instance is registered, and nothing is written.

use evidence::{Kept, StoreError, Stored};
use sqlx::PgPool;

use crate::session::Role;
use crate::{Options, reader, schema, session};

/// Evidence that is only read.
#[derive(Debug)]
pub struct Look {
    pool: PgPool,
}

impl Look {
    /// At a database whose schema is this program's.
    ///
    /// # Errors
    /// When the database cannot be reached or has another schema.
    pub async fn at(options: &Options) -> Result<Self, StoreError> {
        let mut connection = options.server.connect(Role::Reader).await?;
        schema::check(&mut connection).await?;
        session::close(connection).await;
        Ok(Self { pool: options.server.pool(Role::Reader, 1) })
    }

    /// The states of these streams, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn streams(&self, names: &[&str]) -> Result<Vec<Option<Kept>>, StoreError> {
        reader::streams(&self.pool, names).await
    }

    /// A stream's records from a sequence number on, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<Stored>, StoreError> {
        reader::records(&self.pool, stream, from, limit).await
    }

    /// Lets go of it.
    pub async fn close(self) {
        self.pool.close().await;
    }
}
