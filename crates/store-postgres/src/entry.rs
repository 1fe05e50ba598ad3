//! Entries, their collateral, and the tiles over them.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use sqlx::{PgExecutor, PgPool};
use store::{Collateral, Entry, Found, GuardKey, StoreError, TileAddress};
use uuid::Uuid;

use crate::error::store_error;
use crate::head;
use crate::limits;
use crate::number::{column, columns, hash, number, rows};

/// Returns the key of a digest in the table `seen`: its first 128 bits. That makes an accidental collision
/// unlikely, and a hit is compared in full.
pub(crate) fn seen_key(digest: &EntryDigest) -> Uuid {
    Uuid::from_bytes(digest.as_bytes().as_chunks().0[0])
}

/// Returns a guard as its column stores it. An index row must be smaller than a third of a page, so a guard of
/// more than [`limits::GUARD_BYTES`] is stored as its hash. The first byte distinguishes the two forms.
pub(crate) fn guard_column(key: &GuardKey) -> Vec<u8> {
    let (form, bytes) = if key.0.len() <= limits::GUARD_BYTES {
        (0, Cow::Borrowed(&key.0))
    } else {
        (1, Cow::Owned(EntryDigest::of(&key.0).as_bytes().to_vec()))
    };
    [&[form], bytes.as_slice()].concat()
}

pub(crate) async fn find(
    executor: impl PgExecutor<'_>,
    digests: &[EntryDigest],
) -> Result<Vec<Option<Found>>, StoreError> {
    let keys: Vec<Uuid> = digests.iter().map(seen_key).collect();
    let hits = sqlx::query!(
        r#"SELECT seen.key AS "key!", seen.idx AS "idx!", entry.digest AS "digest?"
             FROM seen LEFT JOIN entry ON entry.idx = seen.idx
            WHERE seen.key = ANY($1)"#,
        &keys
    )
    .fetch_all(executor)
    .await
    .map_err(store_error)?;
    let mut found = HashMap::with_capacity(hits.len());
    for hit in hits {
        let digest =
            hit.digest.ok_or_else(|| StoreError::Damaged(format!("entry {} is missing", hit.idx)))?;
        let digest = EntryDigest::from_bytes(hash(&digest)?);
        found.insert(hit.key, Found { index: LeafIndex::new(number(hit.idx)?), digest });
    }
    Ok(keys.iter().map(|key| found.get(key).copied()).collect())
}

pub(crate) async fn guards(
    executor: impl PgExecutor<'_>,
    keys: &[GuardKey],
) -> Result<Vec<Option<LeafIndex>>, StoreError> {
    let columns: Vec<Vec<u8>> = keys.iter().map(guard_column).collect();
    let hits = sqlx::query!("SELECT key, idx FROM guard WHERE key = ANY($1)", &columns)
        .fetch_all(executor)
        .await
        .map_err(store_error)?;
    let mut taken = HashMap::with_capacity(hits.len());
    for hit in hits {
        taken.insert(hit.key, LeafIndex::new(number(hit.idx)?));
    }
    Ok(columns.iter().map(|key| taken.get(key).copied()).collect())
}

struct EntryRow {
    idx: i64,
    digest: Vec<u8>,
    statement: Option<Vec<u8>>,
    facts: String,
    policy: Option<i64>,
    rule: Option<String>,
}

impl TryFrom<EntryRow> for Entry {
    type Error = StoreError;

    fn try_from(row: EntryRow) -> Result<Self, StoreError> {
        let (Some(policy), Some(rule)) = (row.policy, row.rule) else {
            return Err(StoreError::Damaged(format!("the admission of entry {} is missing", row.idx)));
        };
        Ok(Self {
            index: LeafIndex::new(number(row.idx)?),
            digest: EntryDigest::from_bytes(hash(&row.digest)?),
            statement: row.statement.map(Bytes::from),
            policy: LeafIndex::new(number(policy)?),
            rule,
            facts: row.facts,
        })
    }
}

pub(crate) async fn entry(pool: &PgPool, index: LeafIndex) -> Result<Option<Entry>, StoreError> {
    match row(pool, index).await? {
        Some(entry) => Ok(Some(entry)),
        None => {
            must_end_before(pool, index).await?;
            Ok(None)
        }
    }
}

/// Returns [`StoreError::Damaged`] if the head covers an entry that was not found. The entry is read again, as it
/// may have been committed between the two reads.
async fn must_end_before(pool: &PgPool, index: LeafIndex) -> Result<(), StoreError> {
    let size = head::read_row(pool).await?.size;
    if column(index.get()) < size && row(pool, index).await?.is_none() {
        return Err(StoreError::Damaged(format!("entry {index} is missing, and the log has {size}")));
    }
    Ok(())
}

async fn row(pool: &PgPool, index: LeafIndex) -> Result<Option<Entry>, StoreError> {
    sqlx::query_as!(
        EntryRow,
        r#"SELECT idx, digest, statement, facts, policy AS "policy?", rule AS "rule?"
             FROM entry LEFT JOIN admission ON admission.number = entry.admission
            WHERE idx = $1"#,
        column(index.get())
    )
    .fetch_optional(pool)
    .await
    .map_err(store_error)?
    .map(Entry::try_from)
    .transpose()
}

pub(crate) async fn entries(pool: &PgPool, from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError> {
    let found = sqlx::query_as!(
        EntryRow,
        r#"SELECT idx, digest, statement, facts, policy AS "policy?", rule AS "rule?"
             FROM entry LEFT JOIN admission ON admission.number = entry.admission
            WHERE idx >= $1 ORDER BY idx LIMIT $2"#,
        column(from.get()),
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    let found: Vec<Entry> = found.into_iter().map(Entry::try_from).collect::<Result<_, _>>()?;
    match found.iter().zip(from.get()..).find(|(entry, index)| entry.index.get() != *index) {
        None => {
            if found.len() < limit {
                must_end_before(pool, LeafIndex::new(from.get() + found.len() as u64)).await?;
            }
            Ok(found)
        }
        Some((_, index)) => Err(StoreError::Damaged(format!("entry {index} is missing"))),
    }
}

pub(crate) async fn entries_at(pool: &PgPool, leaves: &[LeafIndex]) -> Result<Vec<Entry>, StoreError> {
    let rows = sqlx::query_as!(
        EntryRow,
        r#"SELECT idx AS "idx!", digest AS "digest!", statement, facts AS "facts!", policy AS "policy?", rule AS "rule?"
             FROM entry LEFT JOIN admission ON admission.number = entry.admission
            WHERE idx = ANY($1)"#,
        &columns(leaves)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    let found = rows.into_iter().map(|row| Entry::try_from(row).map(|entry| (entry.index, entry)));
    let found: HashMap<LeafIndex, Entry> = found.collect::<Result<_, _>>()?;
    let mut entries = Vec::with_capacity(found.len());
    for leaf in leaves {
        match found.get(leaf) {
            Some(entry) => entries.push(entry.clone()),
            None => must_end_before(pool, *leaf).await?,
        }
    }
    Ok(entries)
}

pub(crate) async fn digests(
    pool: &PgPool,
    from: LeafIndex,
    limit: usize,
) -> Result<Vec<EntryDigest>, StoreError> {
    let found = sqlx::query!(
        "SELECT idx, digest FROM entry WHERE idx >= $1 ORDER BY idx LIMIT $2",
        column(from.get()),
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    if found.len() < limit {
        must_end_before(pool, LeafIndex::new(from.get() + found.len() as u64)).await?;
    }
    match found.iter().zip(column(from.get())..).find(|(row, index)| row.idx != *index) {
        None => found.iter().map(|row| Ok(EntryDigest::from_bytes(hash(&row.digest)?))).collect(),
        Some((_, index)) => Err(StoreError::Damaged(format!("entry {index} is missing"))),
    }
}

pub(crate) async fn collateral(pool: &PgPool, index: LeafIndex) -> Result<Vec<Collateral>, StoreError> {
    let items = sqlx::query!(
        r#"SELECT kind, bytes AS "bytes!" FROM collateral
            WHERE idx = $1 AND bytes IS NOT NULL ORDER BY kind, no"#,
        column(index.get())
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    items
        .into_iter()
        .map(|item| {
            let kind = u8::try_from(item.kind)
                .map_err(|_| StoreError::Damaged(format!("collateral of kind {}", item.kind)))?;
            Ok(Collateral { kind, bytes: item.bytes.into() })
        })
        .collect()
}

pub(crate) async fn tiles(
    pool: &PgPool,
    addresses: &[TileAddress],
) -> Result<Vec<Option<Bytes>>, StoreError> {
    let keys: Vec<(i16, i64)> =
        addresses.iter().map(|address| (i16::from(address.level), column(address.number))).collect();
    let (levels, numbers): (Vec<i16>, Vec<i64>) = keys.iter().copied().unzip();
    let stored = sqlx::query!(
        r#"SELECT asked.level AS "level!", asked.no AS "no!",
                  (SELECT string_agg(tile.data, '' ORDER BY tile.first) FROM tile
                    WHERE tile.level = asked.level AND tile.no = asked.no) AS data
             FROM UNNEST($1::smallint[], $2::bigint[]) AS asked (level, no)"#,
        &levels,
        &numbers
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    let stored: HashMap<(i16, i64), Bytes> = stored
        .into_iter()
        .filter_map(|tile| Some(((tile.level, tile.no), Bytes::from(tile.data?))))
        .collect();
    Ok(keys.iter().map(|key| stored.get(key).cloned()).collect())
}
