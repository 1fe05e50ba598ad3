//! Queries that only read.

use std::collections::HashMap;

use bytes::Bytes;
use evidence::{
    Claim, DeliveryState, OpenDecision, Record, RecordKind, StoreError, StoredRecord, StoredStream,
    StreamSummary,
};
use merkle::EntryDigest;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgPool};

use crate::error::store_error;
use crate::number::{column, digest, get, number, rows};

pub(crate) async fn streams(pool: &PgPool, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
    let select = sqlx::query(
        "SELECT s.name, s.version, a.agreed, s.running, s.closed, s.keep_until, s.next_seq
           FROM stream s LEFT JOIN agreement a ON a.stream = s.no WHERE s.name = ANY ($1)",
    );
    // No stream has such a name, and the server would reject the text.
    let storable: Vec<&str> = names.iter().copied().filter(|name| !name.contains('\0')).collect();
    if storable.is_empty() {
        return Ok(names.iter().map(|_| None).collect());
    }
    let mut found = HashMap::with_capacity(names.len());
    for row in &select.bind(storable).fetch_all(pool).await.map_err(store_error)? {
        let kept = StoredStream {
            version: number(row, 1)?,
            agreed: get::<Option<Vec<u8>>>(row, 2)?.map(Bytes::from),
            running: bytes(row, 3)?,
            closed: get(row, 4)?,
            keep_until: number(row, 5)?,
            next_seq: number(row, 6)?,
        };
        found.insert(get::<String>(row, 0)?, kept);
    }
    Ok(names.iter().map(|name| found.get(*name).cloned()).collect())
}

pub(crate) async fn claimed(pool: &PgPool, claims: &[Claim]) -> Result<Vec<bool>, StoreError> {
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let streams: Vec<&str> = claims.iter().map(|claim| claim.stream.as_str()).collect();
    let kinds: Vec<i16> = claims.iter().map(|claim| claim.kind.number()).collect();
    let keys: Vec<&[u8]> = claims.iter().map(|claim| &claim.key[..]).collect();
    let select = sqlx::query(
        "SELECT EXISTS (SELECT FROM stream s JOIN claim k ON k.stream = s.no
                         WHERE s.name = c.stream AND k.kind = c.kind AND k.key = c.key)
           FROM unnest($1::text[], $2::smallint[], $3::bytea[]) WITH ORDINALITY AS c (stream, kind, key, place)
          ORDER BY c.place",
    );
    let found = select.bind(streams).bind(kinds).bind(keys).fetch_all(pool).await.map_err(store_error)?;
    found.iter().map(|row| get(row, 0)).collect()
}

pub(crate) async fn orphans(pool: &PgPool, limit: usize) -> Result<Vec<OpenDecision>, StoreError> {
    let select = sqlx::query(
        "SELECT r.id, s.name, r.instance
           FROM (SELECT o.record
                   FROM (SELECT no FROM instance WHERE until <= now()) AS i
                  CROSS JOIN LATERAL (SELECT record FROM open_decision WHERE instance = i.no ORDER BY record LIMIT $1) AS o
                  ORDER BY o.record LIMIT $1) AS o
           JOIN record r ON r.no = o.record JOIN stream s ON s.no = r.stream ORDER BY r.no",
    );
    let found = select.bind(rows(limit)).fetch_all(pool).await.map_err(store_error)?;
    let open =
        |row: &PgRow| Ok(OpenDecision { id: digest(row, 0)?, stream: get(row, 1)?, instance: get(row, 2)? });
    found.iter().map(open).collect()
}

/// Query for records with the state of their delivery.
const STORED: &str = "SELECT r.id, s.name, r.seq, r.kind, r.at, r.statement, r.verdict, r.annex, r.instance,
       d.record IS NOT NULL, d.leaf_index, d.receipt, k.why
  FROM record r JOIN stream s ON s.no = r.stream
  LEFT JOIN delivery d ON d.record = r.no LEFT JOIN stuck k ON k.record = r.no";

pub(crate) async fn record(pool: &PgPool, id: &EntryDigest) -> Result<Option<StoredRecord>, StoreError> {
    let select = sqlx::query(AssertSqlSafe(format!("{STORED} WHERE r.id = $1"))).bind(&id.as_bytes()[..]);
    let row = select.fetch_optional(pool).await.map_err(store_error)?;
    row.as_ref().map(stored).transpose()
}

pub(crate) async fn records(
    pool: &PgPool,
    stream: &str,
    from: u64,
    limit: usize,
) -> Result<Vec<StoredRecord>, StoreError> {
    let select = format!("{STORED} WHERE s.name = $1 AND r.seq >= $2 ORDER BY r.seq LIMIT $3");
    let select = sqlx::query(AssertSqlSafe(select)).bind(stream).bind(column(from)).bind(rows(limit));
    select.fetch_all(pool).await.map_err(store_error)?.iter().map(stored).collect()
}

fn stored(row: &PgRow) -> Result<StoredRecord, StoreError> {
    let record = Record {
        id: digest(row, 0)?,
        stream: get(row, 1)?,
        seq: number(row, 2)?,
        kind: kind(row, 3)?,
        at: number(row, 4)?,
        statement: bytes(row, 5)?,
        verdict: get::<Option<Vec<u8>>>(row, 6)?.map(Bytes::from),
        annex: bytes(row, 7)?,
    };
    Ok(StoredRecord { record, instance: get(row, 8)?, delivery: delivery(row)? })
}

fn delivery(row: &PgRow) -> Result<DeliveryState, StoreError> {
    if get(row, 9)? {
        let leaf_index = get::<Option<i64>>(row, 10)?.map(|_| number(row, 10)).transpose()?;
        let receipt = get::<Option<Vec<u8>>>(row, 11)?.map(Bytes::from);
        return Ok(DeliveryState::Delivered { leaf_index, receipt });
    }
    Ok(match get(row, 12)? {
        Some(why) => DeliveryState::Stuck(why),
        None => DeliveryState::Pending,
    })
}

const LISTED: &str = "SELECT name, version, next_seq, closed, keep_until FROM stream";

/// Reads due streams by the clock that is behind, the caller's or the server's: a gateway whose clock is ahead ends no
/// stream that others still use.
pub(crate) async fn due(pool: &PgPool, at: u64, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
    let select = format!(
        "{LISTED} WHERE NOT closed AND keep_until <= least($1, extract(epoch FROM now())::bigint)
          ORDER BY keep_until, name LIMIT $2"
    );
    let select = sqlx::query(AssertSqlSafe(select)).bind(column(at)).bind(rows(limit));
    select.fetch_all(pool).await.map_err(store_error)?.iter().map(listed).collect()
}

pub(crate) async fn list(
    pool: &PgPool,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<StreamSummary>, StoreError> {
    // No name is empty, so all names come after the empty one.
    let select = sqlx::query(AssertSqlSafe(format!("{LISTED} WHERE name > $1 ORDER BY name LIMIT $2")));
    let select = select.bind(after.unwrap_or_default()).bind(rows(limit));
    select.fetch_all(pool).await.map_err(store_error)?.iter().map(listed).collect()
}

fn listed(row: &PgRow) -> Result<StreamSummary, StoreError> {
    Ok(StreamSummary {
        stream: get(row, 0)?,
        version: number(row, 1)?,
        next_seq: number(row, 2)?,
        closed: get(row, 3)?,
        keep_until: number(row, 4)?,
    })
}

fn bytes(row: &PgRow, column: usize) -> Result<Bytes, StoreError> {
    get::<Vec<u8>>(row, column).map(Bytes::from)
}

pub(crate) fn kind(row: &PgRow, column: usize) -> Result<RecordKind, StoreError> {
    let name: String = get(row, column)?;
    RecordKind::of(&name).ok_or_else(|| StoreError::Damaged(format!("a record of an unknown kind: {name}")))
}
