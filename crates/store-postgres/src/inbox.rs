//! The inbox: statements that wait for the sequencer. Rows are only inserted; an outcome ends an attempt.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use sqlx::PgPool;
use store::{Arrival, Enqueued, InboxItem, InboxUse, PendingKey, Progress, StoreError};

use crate::error::store_error;
use crate::head;
use crate::notices::ServerWarnings;
use crate::number::{column, hash, number, rows};

pub(crate) async fn enqueue(
    pool: &PgPool,
    warnings: &ServerWarnings,
    item: &InboxItem,
    arrival: &Arrival<'_>,
) -> Result<Enqueued, StoreError> {
    let (key, bounds) = (arrival.issuer_key(), &arrival.bounds);
    // Two concurrent callers compute the same attempt number; one of them inserts it.
    let kept = sqlx::query!(
        "INSERT INTO inbox (digest, attempt, submission, issuer, issuer_key, arrived_at)
         SELECT $1, coalesce(max(attempt), 0) + 1, $2::bytea, $3, $4::bytea, $5
           FROM (SELECT attempt FROM inbox WHERE digest = $1
                  UNION ALL
                 SELECT attempt FROM inbox_outcome WHERE digest = $1) AS known
         HAVING NOT EXISTS (SELECT FROM inbox
                             WHERE digest = $1
                               AND NOT EXISTS (SELECT FROM inbox_outcome AS o
                                                WHERE o.digest = $1
                                                  AND o.attempt = inbox.attempt AND o.failure IS NOT NULL))
            AND NOT EXISTS (SELECT FROM log WHERE frozen_at IS NOT NULL)
            AND (SELECT count(*) < $6 AND coalesce(sum(bytes), 0) + octet_length($2::bytea) <= $7
                   FROM inbox WHERE issuer_key = $4::bytea)
            AND (SELECT count(*) < $8 AND coalesce(sum(bytes), 0) + octet_length($2::bytea) <= $9
                   FROM inbox)
             ON CONFLICT (digest, attempt) DO NOTHING",
        item.digest.as_bytes(),
        item.submission.as_ref(),
        arrival.issuer_name(),
        &key[..],
        column(arrival.at),
        column(bounds.issuer_rows),
        column(bounds.issuer_bytes),
        column(bounds.rows),
        column(bounds.bytes)
    );
    // First a session: one that is opened may begin with a warning of its own.
    let mut session = pool.acquire().await.map_err(store_error)?;
    let kept = warnings.acknowledged(kept.execute(&mut *session)).await?;
    drop(session);
    match kept.rows_affected() {
        0 => why_not_kept(pool, warnings, item, arrival).await,
        _ => Ok(Enqueued::Kept),
    }
}

/// Finds the bound because of which an item was not inserted.
async fn why_not_kept(
    pool: &PgPool,
    warnings: &ServerWarnings,
    item: &InboxItem,
    arrival: &Arrival<'_>,
) -> Result<Enqueued, StoreError> {
    if head::read_row(pool).await?.frozen_at.is_some() {
        return Err(StoreError::Frozen);
    }
    if let Some(Progress::Pending | Progress::Registered(_)) = progress(pool, &item.digest).await? {
        confirm(pool, warnings, &item.digest).await?;
        return Ok(Enqueued::Kept);
    }
    let key = arrival.issuer_key();
    let has_room = sqlx::query_scalar!(
        r#"SELECT count(*) < $2 AND coalesce(sum(bytes), 0) + $3 <= $4 AS "has_room!"
             FROM inbox WHERE issuer_key = $1"#,
        &key[..],
        column(arrival.bounds.issuer_rows),
        column(item.submission.len() as u64),
        column(arrival.bounds.issuer_bytes)
    );
    match has_room.fetch_one(pool).await.map_err(store_error)? {
        true => Ok(Enqueued::Full),
        false => Ok(Enqueued::IssuerFull),
    }
}

/// Confirms that the standbys have an item that is pending or registered: the commit that made it so may have been
/// answered with a warning. A lock on a row is a write, whose commit waits for the standbys as any other. Locks nothing
/// if the item was trimmed meanwhile.
async fn confirm(pool: &PgPool, warnings: &ServerWarnings, digest: &EntryDigest) -> Result<(), StoreError> {
    let lock = sqlx::query!("SELECT attempt FROM inbox WHERE digest = $1 FOR KEY SHARE", digest.as_bytes());
    let mut session = pool.acquire().await.map_err(store_error)?;
    warnings.acknowledged(lock.fetch_all(&mut *session)).await?;
    Ok(())
}

pub(crate) async fn pending_keys(
    pool: &PgPool,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<PendingKey>, StoreError> {
    sqlx::query!(
        r#"SELECT arrival AS "arrival!", digest, issuer, bytes AS "bytes!", arrived_at FROM inbox
          WHERE arrival > $1
            AND NOT EXISTS (SELECT FROM inbox_outcome AS o
                             WHERE o.digest = inbox.digest
                               AND o.attempt = inbox.attempt)
          ORDER BY arrival LIMIT $2"#,
        after.map_or(-1, column),
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(|row| {
        Ok(PendingKey {
            number: number(row.arrival)?,
            digest: EntryDigest::from_bytes(hash(&row.digest)?),
            issuer: row.issuer,
            bytes: number(row.bytes.into())?,
            at: number(row.arrived_at)?,
        })
    })
    .collect()
}

pub(crate) async fn submissions(pool: &PgPool, numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError> {
    let numbers: Vec<i64> = numbers.iter().map(|number| column(*number)).collect();
    sqlx::query!(
        r#"SELECT arrival AS "arrival!", submission FROM inbox
          WHERE arrival = ANY($1)
            AND NOT EXISTS (SELECT FROM inbox_outcome AS o
                             WHERE o.digest = inbox.digest
                               AND o.attempt = inbox.attempt)
          ORDER BY arrival"#,
        &numbers
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(|row| Ok((number(row.arrival)?, row.submission.into())))
    .collect()
}

pub(crate) async fn in_use(pool: &PgPool) -> Result<InboxUse, StoreError> {
    let used = sqlx::query!(
        r#"SELECT count(*) AS "rows!", coalesce(sum(bytes), 0)::bigint AS "bytes!",
                  min(nullif(arrived_at, 0)) AS oldest
             FROM inbox
            WHERE NOT EXISTS (SELECT FROM inbox_outcome AS o
                               WHERE o.digest = inbox.digest
                                 AND o.attempt = inbox.attempt)"#
    );
    let used = used.fetch_one(pool).await.map_err(store_error)?;
    Ok(InboxUse {
        rows: number(used.rows)?,
        bytes: number(used.bytes)?,
        oldest: used.oldest.map(number).transpose()?,
    })
}

pub(crate) async fn progress(pool: &PgPool, digest: &EntryDigest) -> Result<Option<Progress>, StoreError> {
    let newest = sqlx::query!(
        "SELECT idx, failure
           FROM (SELECT attempt, 0 AS ended, NULL::bigint AS idx, NULL::text AS failure
                   FROM inbox WHERE digest = $1
                  UNION ALL
                 SELECT attempt, 1, idx, failure FROM inbox_outcome WHERE digest = $1) AS known
          ORDER BY attempt DESC, ended DESC LIMIT 1",
        digest.as_bytes()
    )
    .fetch_optional(pool)
    .await
    .map_err(store_error)?;
    let Some(newest) = newest else { return Ok(None) };
    Ok(Some(match (newest.idx, newest.failure) {
        (Some(index), _) => Progress::Registered(LeafIndex::new(number(index)?)),
        (None, Some(failure)) => Progress::Failed(failure),
        (None, None) => Progress::Pending,
    }))
}

pub(crate) async fn refuse(pool: &PgPool, digest: &EntryDigest, failure: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO inbox_outcome (digest, attempt, failure)
         SELECT digest, attempt, $2 FROM inbox WHERE digest = $1
             ON CONFLICT (digest, attempt) DO NOTHING",
        digest.as_bytes(),
        failure
    )
    .execute(pool)
    .await
    .map_err(store_error)?;
    Ok(())
}

/// Removes finished attempts. A failed attempt leaves its outcome; a registered one takes all outcomes of its
/// statement with it, as the log itself now has the answer.
pub(crate) async fn trim(pool: &PgPool, limit: usize) -> Result<u64, StoreError> {
    let gone = sqlx::query_scalar!(
        r#"WITH finished AS (
             SELECT inbox.digest, inbox.attempt, o.idx FROM inbox
               JOIN inbox_outcome AS o
                 ON o.digest = inbox.digest AND o.attempt = inbox.attempt ORDER BY inbox.arrival LIMIT $1),
           gone AS (
             DELETE FROM inbox USING finished
              WHERE inbox.digest = finished.digest AND inbox.attempt = finished.attempt
             RETURNING 1),
           forgotten AS (
             DELETE FROM inbox_outcome USING finished
              WHERE inbox_outcome.digest = finished.digest
                AND finished.idx IS NOT NULL)
           SELECT count(*) AS "count!" FROM gone"#,
        rows(limit)
    )
    .fetch_one(pool)
    .await
    .map_err(store_error)?;
    number(gone)
}

/// Forgets the oldest failures, except the newest `keep`. The outcome of an attempt that is not trimmed stays: without it,
/// the attempt would be pending again.
pub(crate) async fn forget_failures(pool: &PgPool, keep: u64, limit: usize) -> Result<u64, StoreError> {
    let forgotten = sqlx::query!(
        "DELETE FROM inbox_outcome WHERE failure IS NOT NULL AND no IN (
           SELECT o.no FROM inbox_outcome AS o
            WHERE o.failure IS NOT NULL
              AND o.no <= (SELECT no FROM inbox_outcome WHERE failure IS NOT NULL
                            ORDER BY no DESC OFFSET $1 LIMIT 1)
              AND NOT EXISTS (SELECT FROM inbox
                               WHERE inbox.digest = o.digest
                                 AND inbox.attempt = o.attempt)
            ORDER BY o.no LIMIT $2)",
        column(keep),
        rows(limit)
    );
    Ok(forgotten.execute(pool).await.map_err(store_error)?.rows_affected())
}

/// Reads pending items with their submissions.
pub(crate) async fn waiting(
    pool: &PgPool,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<(u64, InboxItem)>, StoreError> {
    let found = sqlx::query!(
        r#"SELECT arrival AS "arrival!", digest, submission FROM inbox
          WHERE arrival > $1
            AND NOT EXISTS (SELECT FROM inbox_outcome AS o
                             WHERE o.digest = inbox.digest
                               AND o.attempt = inbox.attempt)
          ORDER BY arrival LIMIT $2"#,
        after.map_or(-1, column),
        rows(limit)
    );
    let found = found.fetch_all(pool).await.map_err(store_error)?;
    found
        .into_iter()
        .map(|row| {
            let digest = EntryDigest::from_bytes(hash(&row.digest)?);
            Ok((number(row.arrival)?, InboxItem { digest, submission: row.submission.into() }))
        })
        .collect()
}
