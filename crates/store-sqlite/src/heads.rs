//! The history of heads, signatures over them, and the keys that sign.

use bytes::Bytes;
use merkle::{LeafIndex, RootHash, TreeSize};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use store::{CommittedHead, HeadSignature, SignatureKind, SignedHead, StoreError};

use crate::Sqlite;
use crate::reader::{blob, number};
use crate::rows::Rows;
use crate::sql::{self, signed, store_error};

pub(crate) async fn list(
    pool: &SqlitePool,
    from: u64,
    limit: usize,
) -> Result<Vec<CommittedHead>, StoreError> {
    let query =
        sqlx::query("SELECT batch, epoch, size, root, at FROM batch WHERE batch >= ? ORDER BY batch LIMIT ?");
    let rows =
        query.bind(signed(from)).bind(signed(limit as u64)).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(committed_head).collect()
}

pub(crate) async fn of_size(pool: &SqlitePool, size: TreeSize) -> Result<Option<CommittedHead>, StoreError> {
    let query = sqlx::query("SELECT batch, epoch, size, root, at FROM batch WHERE size = ?");
    let row = query.bind(signed(size.get())).fetch_optional(pool).await.map_err(store_error)?;
    row.as_ref().map(committed_head).transpose()
}

pub(crate) async fn covering(
    pool: &SqlitePool,
    leaf: LeafIndex,
) -> Result<Option<CommittedHead>, StoreError> {
    let query =
        sqlx::query("SELECT batch, epoch, size, root, at FROM batch WHERE size > ? ORDER BY size LIMIT 1");
    let row = query.bind(signed(leaf.get())).fetch_optional(pool).await.map_err(store_error)?;
    row.as_ref().map(committed_head).transpose()
}

fn committed_head(row: &SqliteRow) -> Result<CommittedHead, StoreError> {
    Ok(CommittedHead {
        batch: number(row, 0)?,
        epoch: number(row, 1)?,
        size: TreeSize::new(number(row, 2)?),
        root: RootHash::from_bytes(sql::hash(blob(row, 3)?)?),
        at: number(row, 4)?,
    })
}

pub(crate) async fn keep_signatures(store: &Sqlite, signatures: &[HeadSignature]) -> Result<(), StoreError> {
    store.writable().await?;
    let mut rows = Rows::of_transaction();
    rows.insert_signatures(signatures);
    rows.keep(store).await
}

pub(crate) async fn signature(
    pool: &SqlitePool,
    size: TreeSize,
    kind: SignatureKind,
    kid: &[u8],
) -> Result<Option<HeadSignature>, StoreError> {
    let query = sqlx::query(
        "SELECT size, kind, kid, bytes FROM head_signature WHERE size = ? AND kind = ? AND kid = ?",
    );
    let query = query.bind(signed(size.get())).bind(kind as u8).bind(kid);
    query.fetch_optional(pool).await.map_err(store_error)?.as_ref().map(head_signature).transpose()
}

pub(crate) async fn newest_signed(
    pool: &SqlitePool,
    kind: SignatureKind,
) -> Result<Option<SignedHead>, StoreError> {
    let query = sqlx::query(
        "SELECT b.batch, b.epoch, b.size, b.root, b.at, s.size, s.kind, s.kid, s.bytes
         FROM head_signature s INDEXED BY head_signature_by_kind JOIN batch b ON b.size = s.size
         WHERE s.kind = ? ORDER BY s.size DESC LIMIT 1",
    );
    let Some(row) = query.bind(kind as u8).fetch_optional(pool).await.map_err(store_error)? else {
        return Ok(None);
    };
    Ok(Some(SignedHead { head: committed_head(&row)?, signature: signature_at(&row, 5)? }))
}

pub(crate) async fn signatures(
    pool: &SqlitePool,
    after: Option<TreeSize>,
    limit: usize,
) -> Result<Vec<HeadSignature>, StoreError> {
    let query = sqlx::query(
        "SELECT size, kind, kid, bytes FROM head_signature
         WHERE size > ?1 AND size <= (SELECT max(size) FROM
           (SELECT size FROM head_signature WHERE size > ?1 ORDER BY size LIMIT ?2))
         ORDER BY size, kind, kid",
    );
    let query = query.bind(after.map_or(-1, |size| signed(size.get()))).bind(signed(limit as u64));
    query.fetch_all(pool).await.map_err(store_error)?.iter().map(head_signature).collect()
}

fn head_signature(row: &SqliteRow) -> Result<HeadSignature, StoreError> {
    signature_at(row, 0)
}

fn signature_at(row: &SqliteRow, first: usize) -> Result<HeadSignature, StoreError> {
    let kind = match number(row, first + 1)? {
        1 => SignatureKind::Receipt,
        2 => SignatureKind::Checkpoint,
        3 => SignatureKind::Cosignature,
        other => return Err(StoreError::Damaged(format!("{other} is stored as the kind of a signature"))),
    };
    Ok(HeadSignature {
        size: TreeSize::new(number(row, first)?),
        kind,
        kid: blob(row, first + 2)?.to_vec(),
        bytes: Bytes::copy_from_slice(blob(row, first + 3)?),
    })
}
