//! Statements that wait for the sequencer: attempts, and one outcome for each.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use sqlx::Row;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use store::{InboxItem, Progress, State, StoreError};

use crate::moving;
use crate::reader::blob;
use crate::sql::{self, signed, store_error, unsigned};

pub(crate) async fn enqueue(pool: &SqlitePool, item: &InboxItem) -> Result<(), StoreError> {
    // One statement, so that two requests cannot both find the inbox empty. Trimmed failures have
    // lost their attempt, and a registered outcome stands in the way of another one.
    let query = sqlx::query(
        "INSERT INTO inbox (digest, submission) SELECT ?1, ?2
         WHERE NOT EXISTS (SELECT 1 FROM inbox i WHERE i.digest = ?1
             AND NOT EXISTS (SELECT 1 FROM inbox_outcome o WHERE o.attempt = i.attempt))
           AND NOT EXISTS (SELECT 1 FROM inbox_outcome WHERE digest = ?1 AND idx IS NOT NULL)
           AND NOT EXISTS (SELECT 1 FROM log WHERE frozen_at IS NOT NULL)",
    );
    let query = query.bind(&item.digest.as_bytes()[..]).bind(&item.submission[..]);
    let kept = query.execute(pool).await.map_err(store_error)?.rows_affected();
    if kept == 0 && matches!(moving::state(pool).await?, State::Frozen { .. }) {
        return Err(StoreError::Frozen);
    }
    Ok(())
}

pub(crate) async fn pending(pool: &SqlitePool, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
    let query = sqlx::query(
        "SELECT digest, submission FROM inbox i
         WHERE NOT EXISTS (SELECT 1 FROM inbox_outcome o WHERE o.attempt = i.attempt)
         ORDER BY attempt LIMIT ?",
    );
    let item = |row: &SqliteRow| {
        let digest = sql::digest(blob(row, 0)?)?;
        Ok(InboxItem { digest, submission: Bytes::copy_from_slice(blob(row, 1)?) })
    };
    query.bind(signed(limit as u64)).fetch_all(pool).await.map_err(store_error)?.iter().map(item).collect()
}

pub(crate) async fn progress(
    pool: &SqlitePool,
    digest: &EntryDigest,
) -> Result<Option<Progress>, StoreError> {
    let query = sqlx::query(
        "SELECT attempt, NULL AS idx, NULL AS failure FROM inbox
           WHERE digest = ?1 AND attempt NOT IN (SELECT attempt FROM inbox_outcome WHERE digest = ?1)
         UNION ALL SELECT attempt, idx, failure FROM inbox_outcome WHERE digest = ?1
         ORDER BY attempt DESC LIMIT 1",
    );
    let row = query.bind(&digest.as_bytes()[..]).fetch_optional(pool).await.map_err(store_error)?;
    let Some(row) = row else { return Ok(None) };
    let index: Option<i64> = row.try_get(1).map_err(store_error)?;
    let failure: Option<String> = row.try_get(2).map_err(store_error)?;
    Ok(Some(match (index, failure) {
        (Some(index), _) => Progress::Registered(LeafIndex::new(unsigned(index)?)),
        (None, Some(failure)) => Progress::Failed(failure),
        (None, None) => Progress::Pending,
    }))
}

pub(crate) async fn refuse(pool: &SqlitePool, digest: &EntryDigest, failure: &str) -> Result<(), StoreError> {
    let query = sqlx::query(
        "INSERT INTO inbox_outcome (attempt, digest, failure)
         SELECT attempt, digest, ?2 FROM inbox
         WHERE digest = ?1 AND attempt NOT IN (SELECT attempt FROM inbox_outcome WHERE digest = ?1)",
    );
    let query = query.bind(&digest.as_bytes()[..]).bind(failure);
    query.execute(pool).await.map(drop).map_err(store_error)
}

pub(crate) async fn trim(pool: &SqlitePool, limit: usize) -> Result<u64, StoreError> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.map_err(store_error)?;
    let finished = "SELECT attempt FROM inbox NATURAL JOIN inbox_outcome ORDER BY attempt LIMIT ?";
    let query = sqlx::query_scalar::<_, i64>(finished).bind(signed(limit as u64));
    let finished = query.fetch_all(&mut *transaction).await.map_err(store_error)?;
    for attempt in &finished {
        let inbox = sqlx::query("DELETE FROM inbox WHERE attempt = ?").bind(attempt);
        inbox.execute(&mut *transaction).await.map_err(store_error)?;
        let outcome =
            sqlx::query("DELETE FROM inbox_outcome WHERE attempt = ? AND idx IS NOT NULL").bind(attempt);
        outcome.execute(&mut *transaction).await.map_err(store_error)?;
    }
    transaction.commit().await.map_err(store_error)?;
    Ok(finished.len() as u64)
}
