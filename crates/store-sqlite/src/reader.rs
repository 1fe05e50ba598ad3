//! Reading the head, entries and look-up keys.

use std::collections::HashMap;

use bytes::Bytes;
use merkle::{CompactRange, EntryDigest, Hash, LeafIndex, TreeSize};
use sqlite::select_in;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Row, SqliteExecutor};
use store::{Collateral, Entry, Found, GuardKey, Head, StoreError};

use crate::sql::{self, seen_key, signed, store_error, to_bytes, unsigned};

pub(crate) async fn head(executor: impl SqliteExecutor<'_>) -> Result<Head, StoreError> {
    let row =
        sqlx::query("SELECT epoch, size, root, edge, batch, at, policy FROM log").fetch_optional(executor);
    let row = row.await.map_err(store_error)?;
    let row = row.ok_or_else(|| StoreError::NoLog("the log was not opened".into()))?;
    let head = Head {
        epoch: number(&row, 0)?,
        edge: edge(TreeSize::new(number(&row, 1)?), blob(&row, 3)?)?,
        batch: number(&row, 4)?,
        at: number(&row, 5)?,
        policy: LeafIndex::new(number(&row, 6)?),
    };
    if head.root().as_bytes()[..] != *blob(&row, 2)? {
        return Err(StoreError::Damaged("the head's root is not that of its edge".into()));
    }
    Ok(head)
}

fn edge(size: TreeSize, bytes: &[u8]) -> Result<CompactRange, StoreError> {
    let hashes =
        bytes.chunks(32).map(|hash| sql::hash(hash).map(Hash::from_bytes)).collect::<Result<_, _>>()?;
    CompactRange::from_parts(size, hashes)
        .map_err(|error| StoreError::Damaged(format!("the head's edge: {error}")))
}

pub(crate) async fn entries(
    pool: &SqlitePool,
    from: LeafIndex,
    limit: usize,
) -> Result<Vec<Entry>, StoreError> {
    let size = size(pool).await?;
    let expected = size.saturating_sub(from.get()).min(limit as u64);
    let select = "SELECT idx, digest, policy, rule, facts, statement FROM entry
                  WHERE idx >= ? ORDER BY idx LIMIT ?";
    let query = sqlx::query(select).bind(signed(from.get())).bind(signed(expected));
    let rows = query.fetch_all(pool).await.map_err(store_error)?;
    let entries: Vec<Entry> = rows.iter().map(entry).collect::<Result<_, _>>()?;
    let mut indexes = entries.iter().map(|entry| entry.index.get());
    match (from.get()..from.get() + expected).find(|index| indexes.next() != Some(*index)) {
        None => Ok(entries),
        Some(missing) => Err(lost(LeafIndex::new(missing), size)),
    }
}

pub(crate) async fn entries_at(pool: &SqlitePool, leaves: &[LeafIndex]) -> Result<Vec<Entry>, StoreError> {
    let size = size(pool).await?;
    let select = "SELECT idx, digest, policy, rule, facts, statement FROM entry WHERE idx IN";
    let indexes: Vec<i64> =
        leaves.iter().map(|leaf| leaf.get()).filter(|index| *index < size).map(signed).collect();
    let rows = select_in(pool, select, &indexes).await.map_err(store_error)?;
    let found = rows.iter().map(|row| entry(row).map(|entry| (entry.index, entry)));
    let found: HashMap<LeafIndex, Entry> = found.collect::<Result<_, _>>()?;
    let committed = leaves.iter().filter(|leaf| leaf.get() < size);
    committed.map(|leaf| found.get(leaf).cloned().ok_or_else(|| lost(*leaf, size))).collect()
}

/// Reads the committed size. A reader of entries does so first: those that it covers are there, even if a batch is committed
/// meanwhile.
async fn size(pool: &SqlitePool) -> Result<u64, StoreError> {
    let size: Option<i64> =
        sqlx::query_scalar("SELECT size FROM log").fetch_optional(pool).await.map_err(store_error)?;
    unsigned(size.unwrap_or(0))
}

fn lost(leaf: LeafIndex, size: u64) -> StoreError {
    StoreError::Damaged(format!("entry {leaf} is missing, and the log has {size}"))
}

pub(crate) async fn digests(
    pool: &SqlitePool,
    from: LeafIndex,
    limit: usize,
) -> Result<Vec<EntryDigest>, StoreError> {
    let select = "SELECT idx, digest FROM entry WHERE idx >= ? ORDER BY idx LIMIT ?";
    let query = sqlx::query(select).bind(signed(from.get())).bind(signed(limit as u64));
    let rows = query.fetch_all(pool).await.map_err(store_error)?;
    let mut digests = Vec::with_capacity(rows.len());
    for (row, index) in rows.iter().zip(from.get()..) {
        if number(row, 0)? != index {
            return Err(StoreError::Damaged(format!("entry {index} is missing")));
        }
        digests.push(sql::digest(blob(row, 1)?)?);
    }
    Ok(digests)
}

fn entry(row: &SqliteRow) -> Result<Entry, StoreError> {
    Ok(Entry {
        index: LeafIndex::new(number(row, 0)?),
        digest: sql::digest(blob(row, 1)?)?,
        policy: LeafIndex::new(number(row, 2)?),
        rule: row.try_get(3).map_err(store_error)?,
        facts: row.try_get(4).map_err(store_error)?,
        statement: row.try_get::<Option<Vec<u8>>, _>(5).map_err(store_error)?.map(to_bytes),
    })
}

pub(crate) async fn find(
    pool: &SqlitePool,
    digests: &[EntryDigest],
) -> Result<Vec<Option<Found>>, StoreError> {
    // The outer join fixes the plan (the key first, then the entry) and shows a missing entry.
    let select =
        "SELECT s.key, s.idx, e.digest FROM seen s LEFT JOIN entry e ON e.idx = s.idx WHERE s.key IN";
    let keys: Vec<&[u8]> = digests.iter().map(seen_key).collect();
    let mut found = HashMap::with_capacity(digests.len());
    for row in select_in(pool, select, &keys).await.map_err(store_error)? {
        let index: u64 = number(&row, 1)?;
        let digest = row.try_get::<Option<&[u8]>, _>(2).map_err(store_error)?;
        let digest =
            digest.ok_or_else(|| StoreError::Damaged(format!("entry {index} is seen, but missing")))?;
        let hit = Found { index: LeafIndex::new(index), digest: sql::digest(digest)? };
        found.insert(blob(&row, 0)?.to_vec(), hit);
    }
    Ok(keys.iter().map(|key| found.get(*key).copied()).collect())
}

pub(crate) async fn guards(
    pool: &SqlitePool,
    keys: &[GuardKey],
) -> Result<Vec<Option<LeafIndex>>, StoreError> {
    let asked: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
    let mut found = HashMap::new();
    let select = "SELECT key, idx FROM guard WHERE key IN";
    for row in select_in(pool, select, &asked).await.map_err(store_error)? {
        found.insert(blob(&row, 0)?.to_vec(), LeafIndex::new(number(&row, 1)?));
    }
    Ok(asked.iter().map(|key| found.get(*key).copied()).collect())
}

/// Converts entry indices to column values.
pub(crate) fn columns(entries: &[LeafIndex]) -> Vec<i64> {
    entries.iter().map(|entry| signed(entry.get())).collect()
}

pub(crate) async fn collateral(pool: &SqlitePool, index: LeafIndex) -> Result<Vec<Collateral>, StoreError> {
    let query = sqlx::query("SELECT kind, bytes FROM collateral WHERE idx = ? ORDER BY kind");
    let rows = query.bind(signed(index.get())).fetch_all(pool).await.map_err(store_error)?;
    let item = |row: &SqliteRow| {
        let kind = row.try_get::<u8, _>(0).map_err(store_error)?;
        Ok(Collateral { kind, bytes: Bytes::copy_from_slice(blob(row, 1)?) })
    };
    rows.iter().map(item).collect()
}

pub(crate) fn number(row: &SqliteRow, column: usize) -> Result<u64, StoreError> {
    unsigned(row.try_get(column).map_err(store_error)?)
}

pub(crate) fn blob(row: &SqliteRow, column: usize) -> Result<&[u8], StoreError> {
    row.try_get(column).map_err(store_error)
}
