//! `Upkeep::prune`: removes old records, streams and instances.
//!
//! Times are compared by the clock that is behind, the caller's or the server's: a gateway whose clock is ahead removes
//! no claim and no use of an envelope that the other gateways still need.

use evidence::{Horizon, Pruned, StoreError};
use sqlx::{PgPool, PgTransaction};

use crate::error::store_error;
use crate::limits;
use crate::number::{column, rows};

pub(crate) async fn prune(
    pool: &PgPool,
    me: i64,
    horizon: Horizon,
    limit: usize,
) -> Result<Pruned, StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    let records = forget_records(&mut transaction, horizon, limit).await?;
    let streams = forget_streams(&mut transaction, horizon.streams, limit).await?;
    forget_instances(&mut transaction, me).await?;
    transaction.commit().await.map_err(store_error)?;
    Ok(Pruned { streams, records })
}

/// Removes records; a horizon that was computed by a clock ahead of the server's is moved back by the difference. Only
/// the first records by number are examined, as they are the oldest: an index of their times would have to be written
/// with every commit.
async fn forget_records(
    transaction: &mut PgTransaction<'_>,
    horizon: Horizon,
    limit: usize,
) -> Result<u64, StoreError> {
    let delete = sqlx::query(
        "DELETE FROM record WHERE no IN (
           SELECT no FROM (
             SELECT r.no, r.at FROM record r
              WHERE EXISTS (SELECT FROM delivery d WHERE d.record = r.no)
                AND NOT EXISTS (SELECT FROM open_decision o WHERE o.record = r.no)
              ORDER BY r.no LIMIT $2 FOR UPDATE SKIP LOCKED) AS first
            WHERE at < $1 - greatest(0, $3 - extract(epoch FROM now())::bigint))",
    );
    let delete = delete.bind(column(horizon.records)).bind(rows(limit)).bind(column(horizon.streams));
    let delete = delete.execute(&mut **transaction);
    Ok(delete.await.map_err(store_error)?.rows_affected())
}

/// Removes streams; called after [`forget_records`], as a stream with records stays.
async fn forget_streams(
    transaction: &mut PgTransaction<'_>,
    before: u64,
    limit: usize,
) -> Result<u64, StoreError> {
    let delete = sqlx::query(
        "DELETE FROM stream WHERE no IN (
           SELECT s.no FROM stream s
            WHERE s.closed AND s.keep_until < least($1, extract(epoch FROM now())::bigint)
              AND NOT EXISTS (SELECT FROM record r WHERE r.stream = s.no)
            ORDER BY s.keep_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
    );
    let delete = delete.bind(column(before)).bind(rows(limit)).execute(&mut **transaction);
    Ok(delete.await.map_err(store_error)?.rows_affected())
}

/// Removes the rows of old instances, and adds their outbox counts to this instance's row; removes none if that was removed
/// itself.
async fn forget_instances(transaction: &mut PgTransaction<'_>, me: i64) -> Result<(), StoreError> {
    let fold = sqlx::query(
        "WITH over AS MATERIALIZED (
           SELECT i.no FROM instance i
            WHERE i.no <> $1 AND EXISTS (SELECT FROM instance mine WHERE mine.no = $1)
              AND i.until < now() - make_interval(secs => $2)
              AND NOT EXISTS (SELECT FROM outbox o WHERE o.instance = i.no)
              AND NOT EXISTS (SELECT FROM stuck k WHERE k.instance = i.no)
              AND NOT EXISTS (SELECT FROM open_decision d WHERE d.instance = i.no)
              FOR UPDATE SKIP LOCKED),
         gone AS (DELETE FROM instance WHERE no IN (SELECT no FROM over) RETURNING records, bytes, stuck),
         total AS (SELECT coalesce(sum(records), 0)::bigint AS records, coalesce(sum(bytes), 0)::bigint AS bytes,
                          coalesce(sum(stuck), 0)::bigint AS stuck, count(*) AS instances FROM gone)
         UPDATE instance i SET records = i.records + total.records, bytes = i.bytes + total.bytes,
                               stuck = i.stuck + total.stuck
           FROM total WHERE i.no = $1 AND total.instances > 0",
    );
    let fold = fold.bind(me).bind(f64::from(limits::INSTANCE_KEPT)).execute(&mut **transaction);
    fold.await.map(drop).map_err(store_error)
}
