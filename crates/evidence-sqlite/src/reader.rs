//! Queries of the connections that only read.

use std::collections::HashMap;

use bytes::Bytes;
use evidence::{
    Claim, DeliveryState, OpenDecision, Record, RecordKind, StoreError, StoredRecord, StoredStream,
    StreamSummary,
};
use merkle::EntryDigest;
use sqlite::select_in;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row};

use crate::SharedConnections;
use crate::sql::{self, signed, store_error};

/// Query for streams, up to the list of names.
const STREAMS: &str = "SELECT s.name, s.version, a.agreed, s.running, s.closed, s.keep_until, s.next_seq
  FROM stream s LEFT JOIN agreement a ON a.stream = s.no WHERE s.name IN";

pub(crate) async fn streams(
    pool: &SqlitePool,
    names: &[&str],
) -> Result<Vec<Option<StoredStream>>, StoreError> {
    in_order(names, &select_in(pool, STREAMS, names).await.map_err(store_error)?)
}

/// The streams in the order of these names.
fn in_order(names: &[&str], rows: &[SqliteRow]) -> Result<Vec<Option<StoredStream>>, StoreError> {
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let kept = StoredStream {
            version: sql::number(row, 1)?,
            agreed: row.try_get::<Option<&[u8]>, _>(2).map_err(store_error)?.map(Bytes::copy_from_slice),
            running: bytes(row, 3)?,
            closed: row.try_get(4).map_err(store_error)?,
            keep_until: sql::number(row, 5)?,
            next_seq: sql::number(row, 6)?,
        };
        found.insert(sql::text(row, 0)?, kept);
    }
    Ok(names.iter().map(|name| found.get(*name).cloned()).collect())
}

/// Query for whether a stream, by its name, holds a claim of a kind with a key.
pub(crate) const CLAIMED: &str = "SELECT EXISTS (SELECT 1 FROM claim
  WHERE stream = (SELECT no FROM stream WHERE name = ?) AND kind = ? AND key = ?)";

pub(crate) async fn claimed(pool: &SqlitePool, claims: &[Claim]) -> Result<Vec<bool>, StoreError> {
    let mut answers = Vec::with_capacity(claims.len());
    for claim in claims {
        let select =
            sqlx::query_scalar(CLAIMED).bind(&claim.stream).bind(claim.kind.number()).bind(&claim.key[..]);
        answers.push(select.fetch_one(pool).await.map_err(store_error)?);
    }
    Ok(answers)
}

pub(crate) async fn orphans(
    shared: &SharedConnections,
    limit: usize,
) -> Result<Vec<OpenDecision>, StoreError> {
    let active = shared.leases.active(None);
    let not_theirs = not_in("r.instance", active.len());
    let select = format!(
        "SELECT r.id, s.name, r.instance
           FROM open_decision o CROSS JOIN record r ON r.no = o.record CROSS JOIN stream s ON s.no = r.stream
          WHERE {not_theirs} ORDER BY o.record LIMIT ?"
    );
    let query = active.iter().fold(sqlx::query(AssertSqlSafe(select)), |query, name| query.bind(name));
    let rows = query.bind(sql::rows(limit)).fetch_all(&shared.read).await.map_err(store_error)?;
    let open = |row: &SqliteRow| {
        Ok(OpenDecision {
            id: sql::digest(row, 0)?,
            stream: sql::text(row, 1)?,
            instance: sql::text(row, 2)?,
        })
    };
    rows.iter().map(open).collect()
}

/// Condition `column NOT IN (…)` with this many placeholders; `true` for none.
pub(crate) fn not_in(column: &str, count: usize) -> String {
    match count {
        0 => "true".into(),
        _ => format!("{column} NOT IN ({})", vec!["?"; count].join(",")),
    }
}

/// Query for records with the state of their delivery.
const STORED: &str = "SELECT r.id, s.name, r.seq, r.kind, r.at, r.statement, r.verdict, r.annex, r.instance,
       d.record IS NOT NULL, d.leaf_index, d.receipt, k.why
  FROM record r CROSS JOIN stream s ON s.no = r.stream
  LEFT JOIN delivery d ON d.record = r.no LEFT JOIN stuck k ON k.record = r.no";

pub(crate) async fn record(pool: &SqlitePool, id: &EntryDigest) -> Result<Option<StoredRecord>, StoreError> {
    let select = sqlx::query(AssertSqlSafe(format!("{STORED} WHERE r.id = ?"))).bind(&id.as_bytes()[..]);
    let row = select.fetch_optional(pool).await.map_err(store_error)?;
    row.as_ref().map(stored).transpose()
}

pub(crate) async fn records(
    pool: &SqlitePool,
    stream: &str,
    from: u64,
    limit: usize,
) -> Result<Vec<StoredRecord>, StoreError> {
    let select = format!(
        "{STORED} WHERE r.stream = (SELECT no FROM stream WHERE name = ?) AND r.seq >= ? ORDER BY r.seq LIMIT ?"
    );
    let select = sqlx::query(AssertSqlSafe(select)).bind(stream).bind(signed(from)).bind(sql::rows(limit));
    let rows = select.fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(stored).collect()
}

fn stored(row: &SqliteRow) -> Result<StoredRecord, StoreError> {
    let record = Record {
        id: sql::digest(row, 0)?,
        stream: sql::text(row, 1)?,
        seq: sql::number(row, 2)?,
        kind: kind(row, 3)?,
        at: sql::number(row, 4)?,
        statement: bytes(row, 5)?,
        verdict: row.try_get::<Option<&[u8]>, _>(6).map_err(store_error)?.map(Bytes::copy_from_slice),
        annex: bytes(row, 7)?,
    };
    Ok(StoredRecord { record, instance: sql::text(row, 8)?, delivery: delivery(row)? })
}

fn delivery(row: &SqliteRow) -> Result<DeliveryState, StoreError> {
    if row.try_get(9).map_err(store_error)? {
        let leaf_index: Option<i64> = row.try_get(10).map_err(store_error)?;
        let receipt = row.try_get::<Option<&[u8]>, _>(11).map_err(store_error)?.map(Bytes::copy_from_slice);
        return Ok(DeliveryState::Delivered {
            leaf_index: leaf_index.map(sql::unsigned).transpose()?,
            receipt,
        });
    }
    Ok(match row.try_get(12).map_err(store_error)? {
        Some(why) => DeliveryState::Stuck(why),
        None => DeliveryState::Pending,
    })
}

const LISTED: &str = "SELECT name, version, next_seq, closed, keep_until FROM stream";

pub(crate) async fn due(pool: &SqlitePool, at: u64, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
    let select = format!("{LISTED} WHERE closed = 0 AND keep_until <= ? ORDER BY keep_until, name LIMIT ?");
    let select = sqlx::query(AssertSqlSafe(select)).bind(signed(at)).bind(sql::rows(limit));
    select.fetch_all(pool).await.map_err(store_error)?.iter().map(listed).collect()
}

pub(crate) async fn list(
    pool: &SqlitePool,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<StreamSummary>, StoreError> {
    // No name is empty, so all names come after the empty one.
    let select = sqlx::query(AssertSqlSafe(format!("{LISTED} WHERE name > ? ORDER BY name LIMIT ?")));
    let select = select.bind(after.unwrap_or_default()).bind(sql::rows(limit));
    select.fetch_all(pool).await.map_err(store_error)?.iter().map(listed).collect()
}

fn listed(row: &SqliteRow) -> Result<StreamSummary, StoreError> {
    Ok(StreamSummary {
        stream: sql::text(row, 0)?,
        version: sql::number(row, 1)?,
        next_seq: sql::number(row, 2)?,
        closed: row.try_get(3).map_err(store_error)?,
        keep_until: sql::number(row, 4)?,
    })
}

pub(crate) fn bytes(row: &SqliteRow, column: usize) -> Result<Bytes, StoreError> {
    sql::blob(row, column).map(Bytes::copy_from_slice)
}

pub(crate) fn kind(row: &SqliteRow, column: usize) -> Result<RecordKind, StoreError> {
    let name = sql::text(row, column)?;
    RecordKind::of(&name).ok_or_else(|| StoreError::Damaged(format!("a record of an unknown kind: {name}")))
}
