//! `Quotas` in PostgreSQL: one row for each bucket, shared by all processes of a log.

use std::ops::Range;

use sqlx::PgPool;
use store::StoreError;
use store::quota::check_bucket;

use crate::error::store_error;
use crate::number::{column, number};

pub(crate) async fn take(
    pool: &PgPool,
    bucket: &str,
    window: u64,
    limit: u64,
    want: u64,
) -> Result<u64, StoreError> {
    check_bucket(bucket)?;
    // The statement locks the bucket's row, so `granted` is the amount granted to this call.
    let granted = sqlx::query_scalar!(
        "INSERT INTO quota AS q (bucket, start_at, used, granted)
         VALUES ($1, $2, least($3::bigint, $4::bigint), least($3, $4))
             ON CONFLICT (bucket) DO UPDATE SET
                granted = CASE WHEN q.start_at < $2 THEN least($3, $4)
                               ELSE least($4, greatest($3 - q.used, 0)) END,
                used = CASE WHEN q.start_at < $2 THEN least($3, $4)
                            ELSE q.used + least($4, greatest($3 - q.used, 0)) END,
                start_at = greatest(q.start_at, $2)
         RETURNING granted",
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

pub(crate) async fn trim(pool: &PgPool, keep: Range<u64>) -> Result<u64, StoreError> {
    let trimmed = sqlx::query!(
        "DELETE FROM quota WHERE start_at < $1 OR start_at >= $2",
        column(keep.start),
        column(keep.end)
    )
    .execute(pool)
    .await
    .map_err(store_error)?;
    Ok(trimmed.rows_affected())
}
