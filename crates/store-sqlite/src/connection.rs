//! The one connection that writes, and its replacement after a failed write.
//!
//! A connection is not used again after an error other than a broken constraint: SQLite may have rolled back by itself,
//! and sqlx would then count a transaction for ever that does not exist. After an I/O error the new
//! connection first settles whether the last write happened ([`sqlite::settle`]). While the disk fails, opening or
//! settling fails, and the error has the reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlite::{Doubt, Repair, Script, ScriptFailure, probe, settle};
use sqlx::Connection;
use sqlx::sqlite::{SqliteJournalMode, SqliteLockingMode, SqlitePool};
use store::{StorageFault, StoreError};
use tokio::sync::Mutex;

use crate::{CHECKPOINT_BYTES, Settings, SharedFile, options, place, sql};

/// Memory of the connection's page cache, in KiB: the newest pages of the look-up tables of some million entries.
const CACHE_KIB: u32 = 32 << 10;

/// Pool of one connection, which is replaced before the next write after a failed one.
#[derive(Debug)]
pub(crate) struct WritePool {
    pool: SqlitePool,
    doubt: Doubt,
    repairing: Mutex<()>,
    /// `true` if a script left its transaction open, of which sqlx does not know.
    is_left: Arc<AtomicBool>,
}

impl WritePool {
    /// Opens the connection that writes.
    pub(crate) async fn open(settings: &Settings, wal: bool) -> Result<Self, StoreError> {
        let is_left = Arc::default();
        let pool = pool(settings, wal, Arc::clone(&is_left)).await?;
        Ok(Self { pool, doubt: Doubt::default(), repairing: Mutex::default(), is_left })
    }

    /// The pool of a database that is only read.
    pub(crate) fn read_only(pool: SqlitePool) -> Self {
        Self { pool, doubt: Doubt::default(), repairing: Mutex::default(), is_left: Arc::default() }
    }

    pub(crate) fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// Records the error of a write.
    pub(crate) fn note(&self, error: &StoreError) {
        match error {
            StoreError::Storage(StorageFault::Io, _) | StoreError::Damaged(_) => self.require(Repair::Settle),
            StoreError::Storage(..) | StoreError::Unavailable(_) => self.require(Repair::Reopen),
            StoreError::Refused(_) | StoreError::InUse(_) | StoreError::NoLog(_) | StoreError::Frozen => {}
        }
    }

    /// Records an error of SQLite.
    pub(crate) fn note_failure(&self, error: &sqlx::Error) {
        self.doubt.note(error);
    }

    /// Returns whether a write failed, and the connection is not replaced yet.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.doubt.repair() != Repair::None
    }

    pub(crate) fn require(&self, repair: Repair) {
        self.doubt.require(repair);
    }

    /// Executes a [script](crate::transaction::script) that begins a transaction, and COMMIT after it. After an error the
    /// transaction is rolled back.
    ///
    /// # Errors
    /// [`ScriptFailure`]. If it `may_have_ended`, COMMIT may have happened.
    pub(crate) async fn commit(&self, mut script: Script) -> Result<(), ScriptFailure> {
        let mut connection = self.pool.acquire().await.map_err(ScriptFailure::before)?;
        let unfinished = Unfinished(self);
        script.add("COMMIT");
        let run = script.run(&mut connection).await.map(drop);
        if run.is_err() && sqlx::query("ROLLBACK").execute(&mut *connection).await.is_err() {
            self.is_left.store(true, Ordering::Release);
        }
        std::mem::forget(unfinished);
        // Before the next caller gets the connection.
        run.inspect_err(|failure| self.note_failure(&failure.error))
    }

    /// Replaces the connection if a write failed; waits for its running statement.
    pub(crate) async fn repair(&self, shared: &SharedFile) -> Result<(), StoreError> {
        if !self.is_in_doubt() {
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

    async fn replace(&self, repair: Repair, shared: &SharedFile) -> Result<(), StoreError> {
        if let Some(place) = &shared.place {
            probe(place).await.map_err(sql::store_error)?;
        }
        let old = self.pool.acquire().await.map_err(sql::store_error)?;
        // The result of closing a broken connection does not matter.
        let _ = old.close().await;
        let mut new = self.pool.acquire().await.map_err(sql::store_error)?;
        if let Some(place) = &shared.place {
            // The path may lead to another file by now.
            place.check().map_err(place::store_error)?;
            if repair == Repair::Settle {
                settle(&mut new, place, shared.wal).await.map_err(sql::store_error)?;
            }
        }
        tracing::info!(?repair, "the database is written by a new connection");
        Ok(())
    }
}

/// Guard of a commit, dropped if the caller is cancelled: nobody sees the error then, so the database is settled.
struct Unfinished<'a>(&'a WritePool);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.is_left.store(true, Ordering::Release);
        self.0.require(Repair::Settle);
    }
}

/// Opens the pool of the connection that writes, which closes a connection whose transaction [is left](WritePool::is_left).
async fn pool(settings: &Settings, wal: bool, is_left: Arc<AtomicBool>) -> Result<SqlitePool, StoreError> {
    let options = sqlite::writing(options(settings), CHECKPOINT_BYTES)
        .create_if_missing(true)
        .pragma("cache_size", format!("-{CACHE_KIB}"))
        .pragma("secure_delete", "ON");
    let options = match wal {
        true => options.journal_mode(SqliteJournalMode::Wal),
        false => options.locking_mode(SqliteLockingMode::Exclusive).journal_mode(SqliteJournalMode::Delete),
    };
    let pool = sqlite::pool(1, settings.busy_timeout)
        // The pool must not open connections by itself, as `repair` would not know of them.
        .min_connections(0)
        // A waiting caller may get the connection before a failure is noted. Its writes, in a transaction that is
        // never committed, would be lost without an error.
        .after_release(move |connection, _| {
            let is_left = is_left.swap(false, Ordering::AcqRel);
            Box::pin(async move {
                // sqlx counts a transaction from the success of its BEGIN to that of its COMMIT or ROLLBACK. The rollback of
                // one that was dropped may still be queued. If none is counted, a BEGIN at most is queued, whose caller
                // is gone; sqlx's thread rolls it back at once.
                if connection.is_in_transaction() {
                    connection.ping().await?;
                }
                Ok(!is_left && !connection.is_in_transaction())
            })
        })
        .connect_with(options);
    pool.await.map_err(sql::store_error)
}
