//! The write-ahead log and the rollback journal: checkpoints, and their removal after an erasure.

use sqlx::{AssertSqlSafe, Row};
use store::StoreError;

use crate::{CHECKPOINT_BYTES, Sqlite, sql};

/// Copies the write-ahead log into the database once it exceeds [`CHECKPOINT_BYTES`]. A failure does not undo the
/// commit, which is in the write-ahead log.
pub(crate) async fn checkpoint(store: &Sqlite) {
    let grown = store.shared.place.as_ref().is_some_and(|place| place.wal_bytes() > CHECKPOINT_BYTES);
    if !grown {
        return;
    }
    // Passive, so that a slow reader does not delay the next commit.
    if let Err(error) = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").fetch_all(store.write.pool()).await {
        tracing::error!(%error, "the write-ahead log could not be copied into the database");
        store.write.note_failure(&error);
    }
}

/// Sets the size limit of the rollback journal to zero before an erasure, as the journal would otherwise keep the
/// erased pages after the transaction.
pub(crate) async fn keep_no_journal(store: &Sqlite) -> Result<(), StoreError> {
    store.writable().await?;
    if store.shared.wal {
        return Ok(());
    }
    limit_the_journal(store, 0).await.map_err(sql::store_error)
}

/// Truncates the write-ahead log after an erasure, as erased bytes would stay in it until they are overwritten. If
/// a busy reader prevents that, the next checkpoint does it. Without WAL, restores the limit of the rollback journal.
pub(crate) async fn empty_the_log(store: &Sqlite) {
    let emptied = match store.shared.wal {
        true => sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_all(store.write.pool()).await.map(drop),
        false => limit_the_journal(store, CHECKPOINT_BYTES).await,
    };
    if let Err(error) = emptied {
        tracing::warn!(%error, "erased bytes may still be in the journal");
        store.write.note_failure(&error);
    }
}

/// Copies the write-ahead log into the database file, before the last connection is closed.
pub(crate) async fn finish_the_log(store: &Sqlite) {
    if !store.shared.wal || store.shared.place.is_none() {
        return;
    }
    let finished = async {
        let pool = store.writable().await?;
        let checkpoint = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(pool).await;
        checkpoint.and_then(|row| row.try_get::<bool, _>(0)).map_err(sql::store_error)
    };
    match finished.await {
        Ok(false) => {}
        Ok(true) => {
            tracing::warn!("the write-ahead log stays next to the database: another process reads it")
        }
        Err(error) => tracing::warn!(%error, "the write-ahead log stays next to the database"),
    }
}

async fn limit_the_journal(store: &Sqlite, bytes: u64) -> Result<(), sqlx::Error> {
    let limit = AssertSqlSafe(format!("PRAGMA journal_size_limit = {bytes}"));
    sqlx::query(limit).fetch_all(store.write.pool()).await.map(drop)
}
