//! Statements that wait for the sequencer. Rows are only inserted; an outcome ends an attempt.

use merkle::{EntryDigest, LeafIndex};
use sqlx::PgPool;
use store::{InboxItem, Progress, StoreError};

use crate::error::store_error;
use crate::head;
use crate::number::{hash, number, rows};

pub(crate) async fn enqueue(pool: &PgPool, log: i16, item: &InboxItem) -> Result<(), StoreError> {
    // Two callers compute the same attempt; one of them inserts it.
    let kept = sqlx::query!(
        "INSERT INTO inbox (log_id, digest, attempt, submission)
         SELECT $1, $2, coalesce(max(attempt), 0) + 1, $3
           FROM (SELECT attempt FROM inbox WHERE log_id = $1 AND digest = $2
                  UNION ALL
                 SELECT attempt FROM inbox_outcome WHERE log_id = $1 AND digest = $2) AS known
         HAVING NOT EXISTS (SELECT FROM inbox
                             WHERE log_id = $1 AND digest = $2
                               AND NOT EXISTS (SELECT FROM inbox_outcome AS o
                                                WHERE o.log_id = $1 AND o.digest = $2
                                                  AND o.attempt = inbox.attempt AND o.failure IS NOT NULL))
            AND NOT EXISTS (SELECT FROM log WHERE log_id = $1 AND frozen_at IS NOT NULL)
             ON CONFLICT (log_id, digest, attempt) DO NOTHING",
        log,
        item.digest.as_bytes(),
        item.submission.as_ref()
    )
    .execute(pool)
    .await
    .map_err(store_error)?;
    if kept.rows_affected() == 0 && head::read_row(pool, log).await?.frozen_at.is_some() {
        return Err(StoreError::Frozen);
    }
    Ok(())
}

pub(crate) async fn pending(pool: &PgPool, log: i16, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
    sqlx::query!(
        "SELECT digest, submission FROM inbox
          WHERE log_id = $1
            AND NOT EXISTS (SELECT FROM inbox_outcome AS o
                             WHERE o.log_id = inbox.log_id AND o.digest = inbox.digest
                               AND o.attempt = inbox.attempt)
          ORDER BY arrival LIMIT $2",
        log,
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(|row| {
        Ok(InboxItem {
            digest: EntryDigest::from_bytes(hash(&row.digest)?),
            submission: row.submission.into(),
        })
    })
    .collect()
}

pub(crate) async fn progress(
    pool: &PgPool,
    log: i16,
    digest: &EntryDigest,
) -> Result<Option<Progress>, StoreError> {
    let newest = sqlx::query!(
        "SELECT idx, failure
           FROM (SELECT attempt, 0 AS ended, NULL::bigint AS idx, NULL::text AS failure
                   FROM inbox WHERE log_id = $1 AND digest = $2
                  UNION ALL
                 SELECT attempt, 1, idx, failure FROM inbox_outcome WHERE log_id = $1 AND digest = $2) AS known
          ORDER BY attempt DESC, ended DESC LIMIT 1",
        log,
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

pub(crate) async fn refuse(
    pool: &PgPool,
    log: i16,
    digest: &EntryDigest,
    failure: &str,
) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO inbox_outcome (log_id, digest, attempt, failure)
         SELECT log_id, digest, attempt, $3 FROM inbox WHERE log_id = $1 AND digest = $2
             ON CONFLICT (log_id, digest, attempt) DO NOTHING",
        log,
        digest.as_bytes(),
        failure
    )
    .execute(pool)
    .await
    .map_err(store_error)?;
    Ok(())
}

/// An attempt that failed leaves its outcome; one that registered takes all outcomes of its
/// statement with it, for the log itself now says what became of it.
pub(crate) async fn trim(pool: &PgPool, log: i16, limit: usize) -> Result<u64, StoreError> {
    let gone = sqlx::query_scalar!(
        r#"WITH finished AS (
             SELECT inbox.digest, inbox.attempt, o.idx FROM inbox
               JOIN inbox_outcome AS o
                 ON o.log_id = inbox.log_id AND o.digest = inbox.digest AND o.attempt = inbox.attempt
              WHERE inbox.log_id = $1 ORDER BY inbox.arrival LIMIT $2),
           gone AS (
             DELETE FROM inbox USING finished
              WHERE inbox.log_id = $1 AND inbox.digest = finished.digest AND inbox.attempt = finished.attempt
             RETURNING 1),
           forgotten AS (
             DELETE FROM inbox_outcome USING finished
              WHERE inbox_outcome.log_id = $1 AND inbox_outcome.digest = finished.digest
                AND finished.idx IS NOT NULL)
           SELECT count(*) AS "count!" FROM gone"#,
        log,
        rows(limit)
    )
    .fetch_one(pool)
    .await
    .map_err(store_error)?;
    number(gone)
}
