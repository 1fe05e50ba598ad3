//! The inbox: statements that wait for the sequencer, as attempts with one outcome each.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use sqlx::Row;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use store::{Arrival, Enqueued, InboxItem, InboxUse, PendingKey, Progress, State, StoreError};

use crate::log_state;
use crate::reader::{blob, number};
use crate::sql::{self, signed, store_error, unsigned};

pub(crate) async fn enqueue(
    pool: &SqlitePool,
    item: &InboxItem,
    arrival: &Arrival<'_>,
) -> Result<Enqueued, StoreError> {
    // One statement, so that two requests cannot both find the inbox empty. A trimmed failure has no attempt any
    // more, and a registered outcome prevents another attempt.
    let query = sqlx::query(
        "INSERT INTO inbox (digest, submission, issuer, issuer_key, arrived_at) SELECT ?1, ?2, ?3, ?4, ?5
         WHERE NOT EXISTS (SELECT 1 FROM inbox i WHERE i.digest = ?1
             AND NOT EXISTS (SELECT 1 FROM inbox_outcome o WHERE o.attempt = i.attempt))
           AND NOT EXISTS (SELECT 1 FROM inbox_outcome WHERE digest = ?1 AND idx IS NOT NULL)
           AND NOT EXISTS (SELECT 1 FROM log WHERE frozen_at IS NOT NULL)
           AND (SELECT count(*) < ?6 AND coalesce(sum(bytes), 0) + length(?2) <= ?7 FROM inbox
                 WHERE issuer_key = ?4)
           AND (SELECT count(*) < ?8 AND coalesce(sum(bytes), 0) + length(?2) <= ?9 FROM inbox)",
    );
    let query = query.bind(&item.digest.as_bytes()[..]).bind(&item.submission[..]);
    let (issuer, key, bounds) = (arrival.issuer_name(), arrival.issuer_key(), &arrival.bounds);
    let query = query.bind(issuer).bind(&key[..]).bind(signed(arrival.at));
    let query = query.bind(signed(bounds.issuer_rows)).bind(signed(bounds.issuer_bytes));
    let query = query.bind(signed(bounds.rows)).bind(signed(bounds.bytes));
    match query.execute(pool).await.map_err(store_error)?.rows_affected() {
        0 => why_not_kept(pool, item, arrival).await,
        _ => Ok(Enqueued::Kept),
    }
}

/// Finds the bound because of which an item was not inserted.
async fn why_not_kept(
    pool: &SqlitePool,
    item: &InboxItem,
    arrival: &Arrival<'_>,
) -> Result<Enqueued, StoreError> {
    if matches!(log_state::state(pool).await?, State::Frozen { .. }) {
        return Err(StoreError::Frozen);
    }
    if let Some(Progress::Pending | Progress::Registered(_)) = progress(pool, &item.digest).await? {
        return Ok(Enqueued::Kept);
    }
    let query = sqlx::query_scalar::<_, bool>(
        "SELECT count(*) < ?2 AND coalesce(sum(bytes), 0) + ?3 <= ?4 FROM inbox WHERE issuer_key = ?1",
    );
    let key = arrival.issuer_key();
    let query = query.bind(&key[..]).bind(signed(arrival.bounds.issuer_rows));
    let query = query.bind(signed(item.submission.len() as u64)).bind(signed(arrival.bounds.issuer_bytes));
    match query.fetch_one(pool).await.map_err(store_error)? {
        true => Ok(Enqueued::Full),
        false => Ok(Enqueued::IssuerFull),
    }
}

pub(crate) async fn pending_keys(
    pool: &SqlitePool,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<PendingKey>, StoreError> {
    let query = sqlx::query(
        "SELECT attempt, digest, issuer, bytes, arrived_at FROM inbox i WHERE attempt > ?
           AND NOT EXISTS (SELECT 1 FROM inbox_outcome o WHERE o.attempt = i.attempt)
         ORDER BY attempt LIMIT ?",
    );
    let key = |row: &SqliteRow| {
        Ok(PendingKey {
            number: number(row, 0)?,
            digest: sql::digest(blob(row, 1)?)?,
            issuer: row.try_get(2).map_err(store_error)?,
            bytes: number(row, 3)?,
            at: number(row, 4)?,
        })
    };
    let query = query.bind(after.map_or(-1, signed)).bind(signed(limit as u64));
    query.fetch_all(pool).await.map_err(store_error)?.iter().map(key).collect()
}

pub(crate) async fn submissions(pool: &SqlitePool, numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError> {
    let query = sqlx::query(
        "SELECT attempt, submission FROM inbox i
         WHERE attempt IN (SELECT value FROM json_each(?))
           AND NOT EXISTS (SELECT 1 FROM inbox_outcome o WHERE o.attempt = i.attempt)
         ORDER BY attempt",
    );
    let list = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let rows = query.bind(format!("[{list}]")).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(|row| Ok((number(row, 0)?, Bytes::copy_from_slice(blob(row, 1)?)))).collect()
}

pub(crate) async fn in_use(pool: &SqlitePool) -> Result<InboxUse, StoreError> {
    let query = sqlx::query(
        "SELECT count(*), coalesce(sum(bytes), 0), min(nullif(arrived_at, 0)) FROM inbox i
         WHERE NOT EXISTS (SELECT 1 FROM inbox_outcome o WHERE o.attempt = i.attempt)",
    );
    let row = query.fetch_one(pool).await.map_err(store_error)?;
    let oldest: Option<i64> = row.try_get(2).map_err(store_error)?;
    Ok(InboxUse {
        rows: number(&row, 0)?,
        bytes: number(&row, 1)?,
        oldest: oldest.map(unsigned).transpose()?,
    })
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
    let mut transaction = pool.begin_with(crate::transaction::IMMEDIATE).await.map_err(store_error)?;
    let finished = "SELECT attempt FROM inbox NATURAL JOIN inbox_outcome ORDER BY attempt LIMIT ?";
    let query = sqlx::query_scalar::<_, i64>(finished).bind(signed(limit as u64));
    let finished = query.fetch_all(&mut *transaction).await.map_err(store_error)?;
    for attempt in &finished {
        let inbox = sqlx::query("DELETE FROM inbox WHERE attempt = ?").bind(attempt);
        inbox.execute(&mut *transaction).await.map_err(store_error)?;
        // A registered statement is found in the log: its earlier failures are not needed any more.
        let outcomes = sqlx::query(
            "DELETE FROM inbox_outcome WHERE digest =
               (SELECT digest FROM inbox_outcome WHERE attempt = ? AND idx IS NOT NULL)",
        );
        outcomes.bind(attempt).execute(&mut *transaction).await.map_err(store_error)?;
    }
    transaction.commit().await.map_err(store_error)?;
    Ok(finished.len() as u64)
}

/// Forgets the oldest failures, except the newest `keep`. The outcome of an attempt that is not trimmed stays: without it,
/// the attempt would be pending again.
pub(crate) async fn forget_failures(pool: &SqlitePool, keep: u64, limit: usize) -> Result<u64, StoreError> {
    let query = sqlx::query(
        "DELETE FROM inbox_outcome WHERE no IN (
           SELECT no FROM inbox_outcome
            WHERE failure IS NOT NULL
              AND no <= (SELECT no FROM inbox_outcome WHERE failure IS NOT NULL
                         ORDER BY no DESC LIMIT 1 OFFSET ?1)
              AND attempt NOT IN (SELECT attempt FROM inbox)
            ORDER BY no LIMIT ?2)",
    );
    let query = query.bind(signed(keep)).bind(signed(limit as u64));
    Ok(query.execute(pool).await.map_err(store_error)?.rows_affected())
}

/// Reads pending items with their submissions.
pub(crate) async fn waiting(
    pool: &SqlitePool,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<(u64, InboxItem)>, StoreError> {
    let query = sqlx::query(
        "SELECT attempt, digest, submission FROM inbox i WHERE attempt > ?
           AND NOT EXISTS (SELECT 1 FROM inbox_outcome o WHERE o.attempt = i.attempt)
         ORDER BY attempt LIMIT ?",
    );
    let query = query.bind(after.map_or(-1, signed)).bind(signed(limit as u64));
    let rows = query.fetch_all(pool).await.map_err(store_error)?;
    let item = |row: &SqliteRow| {
        let submission = Bytes::copy_from_slice(blob(row, 2)?);
        Ok((number(row, 0)?, InboxItem { digest: sql::digest(blob(row, 1)?)?, submission }))
    };
    rows.iter().map(item).collect()
}
