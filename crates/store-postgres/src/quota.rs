//! `Quotas` in PostgreSQL: one row for each bucket, shared by all processes of a log.

use std::ops::Range;

use sqlx::PgPool;
use store::StoreError;
use store::quota::check_bucket;

use crate::error::store_error;
use crate::number::{column, number};

pub(crate) async fn take(
    pool: &PgPool,
    log: i16,
    bucket: &str,
    window: u64,
    limit: u64,
    want: u64,
) -> Result<u64, StoreError> {
    check_bucket(bucket)?;
    // The statement locks the bucket's row, so `granted` is the amount granted to this call.
    let granted = sqlx::query_scalar!(
        "INSERT INTO quota AS q (log_id, bucket, start_at, used, granted)
         VALUES ($1, $2, $3, least($4::bigint, $5::bigint), least($4, $5))
             ON CONFLICT (log_id, bucket) DO UPDATE SET
                granted = CASE WHEN q.start_at < $3 THEN least($4, $5)
                               ELSE least($5, greatest($4 - q.used, 0)) END,
                used = CASE WHEN q.start_at < $3 THEN least($4, $5)
                            ELSE q.used + least($5, greatest($4 - q.used, 0)) END,
                start_at = greatest(q.start_at, $3)
         RETURNING granted",
        log,
        bucket,
        column(window),
        column(limit),
        column(want)
    )
    .fetch_one(pool)
    .await
    .map_err(store_error)?;
    number(granted)
}

pub(crate) async fn trim(pool: &PgPool, log: i16, keep: Range<u64>) -> Result<u64, StoreError> {
    let trimmed = sqlx::query!(
        "DELETE FROM quota WHERE log_id = $1 AND (start_at < $2 OR start_at >= $3)",
        log,
        column(keep.start),
        column(keep.end)
    )
    .execute(pool)
    .await
    .map_err(store_error)?;
    Ok(trimmed.rows_affected())
}
