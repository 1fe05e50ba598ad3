//! The one connection that writes, and the way to another one after a write that failed.
//!
//! A connection is never used again after an error other than a broken constraint: SQLite may have rolled back by itself,
//! and sqlx then counts a transaction for ever that is not there. After an I/O error the new connection first settles what
//! may have happened ([`sqlite::settle`]). While the disk fails, opening or settling fails, and the error says why.

use sqlite::{Doubt, Repair, probe, settle};
use sqlx::Connection;
use sqlx::sqlite::{SqliteJournalMode, SqliteLockingMode, SqlitePool, SqliteSynchronous};
use store::{StorageFault, StoreError};
use tokio::sync::Mutex;

use crate::{CHECKPOINT_BYTES, Settings, Shared, options, place, sql};

/// A pool of one connection, which is replaced before the next write once a write failed.
#[derive(Debug)]
pub(crate) struct Writer {
    pool: SqlitePool,
    doubt: Doubt,
    repairing: Mutex<()>,
}

impl Writer {
    pub(crate) fn new(pool: SqlitePool) -> Self {
        Self { pool, doubt: Doubt::default(), repairing: Mutex::default() }
    }

    pub(crate) fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// Notes a write that failed.
    pub(crate) fn note(&self, error: &StoreError) {
        match error {
            StoreError::Storage(StorageFault::Io, _) | StoreError::Damaged(_) => self.require(Repair::Settle),
            StoreError::Storage(..) | StoreError::Unavailable(_) => self.require(Repair::Reopen),
            StoreError::Refused(_) | StoreError::InUse(_) | StoreError::NoLog(_) | StoreError::Frozen => {}
        }
    }

    /// The same, in SQLite's words.
    pub(crate) fn note_failure(&self, error: &sqlx::Error) {
        self.doubt.note(error);
    }

    pub(crate) fn require(&self, repair: Repair) {
        self.doubt.require(repair);
    }

    /// Replaces the connection if a write failed; waits for what still runs on it.
    pub(crate) async fn repair(&self, shared: &Shared) -> Result<(), StoreError> {
        if self.doubt.repair() == Repair::None {
            return Ok(());
        }
        let _alone = self.repairing.lock().await;
        let attempt = self.doubt.attempt();
        if attempt.repair == Repair::None {
            return Ok(());
        }
        self.replace(attempt.repair, shared).await?;
        attempt.succeeded();
        Ok(())
    }

    async fn replace(&self, repair: Repair, shared: &Shared) -> Result<(), StoreError> {
        if let Some(place) = &shared.place {
            probe(place).await.map_err(sql::store_error)?;
        }
        let old = self.pool.acquire().await.map_err(sql::store_error)?;
        // What it says is of no use any more.
        let _ = old.close().await;
        let mut new = self.pool.acquire().await.map_err(sql::store_error)?;
        if let Some(place) = &shared.place {
            // The name may lead to another file by now.
            place.check().map_err(place::store_error)?;
            if repair == Repair::Settle {
                settle(&mut new, place, shared.wal).await.map_err(sql::store_error)?;
            }
        }
        tracing::info!(?repair, "the database is written by a new connection");
        Ok(())
    }
}

/// Opens the pool of the connection that writes.
pub(crate) async fn pool(settings: &Settings, wal: bool) -> Result<SqlitePool, StoreError> {
    let options = options(settings)
        .create_if_missing(true)
        .synchronous(SqliteSynchronous::Full)
        .pragma("secure_delete", "ON")
        .pragma("recursive_triggers", "ON")
        .pragma("wal_autocheckpoint", "0")
        .pragma("journal_size_limit", CHECKPOINT_BYTES.to_string());
    let options = match wal {
        true => options.journal_mode(SqliteJournalMode::Wal),
        false => options.locking_mode(SqliteLockingMode::Exclusive).journal_mode(SqliteJournalMode::Delete),
    };
    let pool = crate::pool(settings, 1)
        // The pool opens no connection by itself, of which `repair` would not know.
        .min_connections(0)
        // Who waits for the connection may get it before a failure is noted. What he writes in a transaction that nobody
        // commits would be lost without a word.
        .after_release(|connection, _| {
            Box::pin(async move {
                connection.ping().await?; // a rollback may still be queued
                Ok(!connection.is_in_transaction())
            })
        })
        .connect_with(options);
    pool.await.map_err(sql::store_error)
}
