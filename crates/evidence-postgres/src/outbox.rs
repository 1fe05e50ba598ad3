//! The outbox: records that wait for the log, and their delivery.

use std::collections::HashSet;

use bytes::Bytes;
use evidence::limits::places_for_fresh;
use evidence::{Backlog, Delivered, PendingRecord, RefusedRecord, StoreError, StuckRecord};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgPool};

use crate::error::store_error;
use crate::number::{column, digest, get, number, rows};
use crate::reader::kind;

/// Reads the records that were never stuck, and fills up with the others.
pub(crate) async fn pending(pool: &PgPool, me: i64, limit: usize) -> Result<Vec<PendingRecord>, StoreError> {
    let retried = pending_where("at = 0", pool, me, limit).await?;
    let fresh = places_for_fresh(limit, retried.len());
    let mut records = pending_where("at > 0", pool, me, fresh).await?;
    records.extend(retried);
    records.truncate(limit);
    Ok(records)
}

/// Reads `limit` records of this instance and of each instance whose lease is over, and returns the oldest of all.
/// Records of other living instances are not read.
async fn pending_where(
    condition: &str,
    pool: &PgPool,
    me: i64,
    limit: usize,
) -> Result<Vec<PendingRecord>, StoreError> {
    let select = format!(
        "SELECT r.id, s.name, r.seq, r.kind, r.at, r.statement
           FROM (SELECT o.record
                   FROM (SELECT no FROM instance WHERE no = $1 OR until <= now()) AS i
                  CROSS JOIN LATERAL (SELECT record FROM outbox
                                       WHERE instance = i.no AND {condition} ORDER BY record LIMIT $2) AS o
                  ORDER BY o.record LIMIT $2) AS o
           JOIN record r ON r.no = o.record JOIN stream s ON s.no = r.stream ORDER BY r.no",
    );
    let select = sqlx::query(AssertSqlSafe(select)).bind(me).bind(rows(limit));
    let found = select.fetch_all(pool).await.map_err(store_error)?;
    found.iter().map(waiting).collect()
}

fn waiting(row: &PgRow) -> Result<PendingRecord, StoreError> {
    Ok(PendingRecord {
        id: digest(row, 0)?,
        stream: get(row, 1)?,
        seq: number(row, 2)?,
        kind: kind(row, 3)?,
        at: number(row, 4)?,
        statement: get::<Vec<u8>>(row, 5).map(Bytes::from)?,
    })
}

/// Marks records as delivered. The server does not wait for its disk: after a crash the same statements may be
/// sent once more, and become the same leaves.
pub(crate) async fn delivered(pool: &PgPool, me: i64, deliveries: &[Delivered]) -> Result<(), StoreError> {
    // Of several deliveries of one record the first counts; the second is sent in another call.
    let mut seen = HashSet::new();
    let (once, again): (Vec<&Delivered>, Vec<&Delivered>) =
        deliveries.iter().partition(|delivery| seen.insert(delivery.id));
    for part in [once, again] {
        let mut seen = HashSet::new();
        let part: Vec<&Delivered> = part.into_iter().filter(|delivery| seen.insert(delivery.id)).collect();
        if part.is_empty() {
            continue;
        }
        let ids: Vec<&[u8]> = part.iter().map(|delivery| &delivery.id.as_bytes()[..]).collect();
        let leaves: Vec<Option<i64>> = part.iter().map(|delivery| delivery.leaf_index.map(column)).collect();
        let receipts: Vec<Option<&[u8]>> = part.iter().map(|delivery| delivery.receipt.as_deref()).collect();
        let call = sqlx::query("SELECT deliver($1, $2, $3, $4)");
        let call = call.bind(me).bind(ids).bind(leaves).bind(receipts);
        call.execute(pool).await.map_err(store_error)?;
    }
    Ok(())
}

pub(crate) async fn stick(pool: &PgPool, me: i64, refused: &[RefusedRecord]) -> Result<(), StoreError> {
    if refused.is_empty() {
        return Ok(());
    }
    let ids: Vec<&[u8]> = refused.iter().map(|one| &one.id.as_bytes()[..]).collect();
    // PostgreSQL's text cannot hold NUL. Each replacement is longer, so that the reason is cut afterwards.
    let reasons: Vec<String> = refused.iter().map(|one| one.why.replace('\0', "\u{fffd}")).collect();
    let reasons: Vec<&str> = reasons.iter().map(|why| evidence::stuck_reason(why)).collect();
    let call = sqlx::query("SELECT set_aside($1, $2, $3)").bind(me).bind(ids).bind(reasons);
    call.execute(pool).await.map(drop).map_err(store_error)
}

pub(crate) async fn unstick(pool: &PgPool, me: i64) -> Result<u64, StoreError> {
    let freed = sqlx::query("SELECT put_back($1)").bind(me).fetch_all(pool).await.map_err(store_error)?;
    freed.first().map_or(Ok(0), |row| number(row, 0))
}

pub(crate) async fn stuck_records(pool: &PgPool, limit: usize) -> Result<Vec<StuckRecord>, StoreError> {
    let select = sqlx::query(
        "SELECT r.id, s.name, r.seq, k.why
           FROM stuck k JOIN record r ON r.no = k.record JOIN stream s ON s.no = r.stream ORDER BY k.record LIMIT $1",
    );
    let found = select.bind(rows(limit)).fetch_all(pool).await.map_err(store_error)?;
    let stuck = |row: &PgRow| {
        Ok(StuckRecord { id: digest(row, 0)?, stream: get(row, 1)?, seq: number(row, 2)?, why: get(row, 3)? })
    };
    found.iter().map(stuck).collect()
}

pub(crate) async fn backlog(pool: &PgPool) -> Result<Backlog, StoreError> {
    let select = sqlx::query(
        "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint, coalesce(sum(stuck), 0)::bigint,
                (SELECT at FROM outbox WHERE at > 0 ORDER BY record LIMIT 1)
           FROM instance",
    );
    let row = select.fetch_one(pool).await.map_err(store_error)?;
    let oldest_at = get::<Option<i64>>(&row, 3)?.map(|_| number(&row, 3)).transpose()?;
    Ok(Backlog { records: number(&row, 0)?, bytes: number(&row, 1)?, stuck: number(&row, 2)?, oldest_at })
}
