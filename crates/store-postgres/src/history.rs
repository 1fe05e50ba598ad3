//! Committed heads, the signatures over them, and the keys that made the signatures.

use merkle::{LeafIndex, RootHash, TreeSize};
use sqlx::PgPool;
use store::{CommittedHead, HeadSignature, SignatureKind, SignedHead, StoreError};

use crate::error::store_error;
use crate::number::{column, hash, number, rows};

struct BatchRow {
    batch: i64,
    epoch: i64,
    size: i64,
    root: Vec<u8>,
    at: i64,
}

impl TryFrom<BatchRow> for CommittedHead {
    type Error = StoreError;

    fn try_from(row: BatchRow) -> Result<Self, StoreError> {
        Ok(Self {
            batch: number(row.batch)?,
            epoch: number(row.epoch)?,
            size: TreeSize::new(number(row.size)?),
            root: RootHash::from_bytes(hash(&row.root)?),
            at: number(row.at)?,
        })
    }
}

pub(crate) async fn heads(pool: &PgPool, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError> {
    sqlx::query_as!(
        BatchRow,
        "SELECT batch, epoch, size, root, at FROM batch
          WHERE batch >= $1 ORDER BY batch LIMIT $2",
        column(from),
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(CommittedHead::try_from)
    .collect()
}

pub(crate) async fn head_of_size(pool: &PgPool, size: TreeSize) -> Result<Option<CommittedHead>, StoreError> {
    sqlx::query_as!(
        BatchRow,
        "SELECT batch, epoch, size, root, at FROM batch WHERE size = $1",
        column(size.get())
    )
    .fetch_optional(pool)
    .await
    .map_err(store_error)?
    .map(CommittedHead::try_from)
    .transpose()
}

pub(crate) async fn head_covering(
    pool: &PgPool,
    leaf: LeafIndex,
) -> Result<Option<CommittedHead>, StoreError> {
    sqlx::query_as!(
        BatchRow,
        "SELECT batch, epoch, size, root, at FROM batch
          WHERE size > $1 ORDER BY size LIMIT 1",
        column(leaf.get())
    )
    .fetch_optional(pool)
    .await
    .map_err(store_error)?
    .map(CommittedHead::try_from)
    .transpose()
}

struct SignatureRow {
    size: i64,
    kind: i16,
    kid: Vec<u8>,
    bytes: Vec<u8>,
}

impl TryFrom<SignatureRow> for HeadSignature {
    type Error = StoreError;

    fn try_from(row: SignatureRow) -> Result<Self, StoreError> {
        Ok(Self {
            size: TreeSize::new(number(row.size)?),
            kind: kind(row.kind)?,
            kid: row.kid,
            bytes: row.bytes.into(),
        })
    }
}

fn kind(column: i16) -> Result<SignatureKind, StoreError> {
    [SignatureKind::Receipt, SignatureKind::Checkpoint, SignatureKind::Cosignature]
        .into_iter()
        .find(|kind| kind_column(*kind) == column)
        .ok_or_else(|| StoreError::Damaged(format!("a signature of kind {column}")))
}

fn kind_column(kind: SignatureKind) -> i16 {
    i16::from(kind as u8)
}

/// Columns of the table `head_signature`.
pub(crate) struct SignatureColumns<'a> {
    pub(crate) sizes: Vec<i64>,
    pub(crate) kinds: Vec<i16>,
    pub(crate) kids: Vec<&'a [u8]>,
    pub(crate) bytes: Vec<&'a [u8]>,
}

impl<'a> SignatureColumns<'a> {
    pub(crate) fn of(signatures: &'a [HeadSignature]) -> Self {
        Self {
            sizes: signatures.iter().map(|signature| column(signature.size.get())).collect(),
            kinds: signatures.iter().map(|signature| kind_column(signature.kind)).collect(),
            kids: signatures.iter().map(|signature| signature.kid.as_slice()).collect(),
            bytes: signatures.iter().map(|signature| signature.bytes.as_ref()).collect(),
        }
    }
}

pub(crate) async fn keep_signatures(pool: &PgPool, signatures: &[HeadSignature]) -> Result<(), StoreError> {
    let SignatureColumns { sizes, kinds, kids, bytes } = SignatureColumns::of(signatures);
    let kept = sqlx::query!(
        "INSERT INTO head_signature (size, kind, kid, bytes)
             SELECT size, kind, kid, bytes
             FROM UNNEST($1::bigint[], $2::smallint[], $3::bytea[], $4::bytea[]) AS t (size, kind, kid, bytes)
             ON CONFLICT (size, kind, kid) DO NOTHING",
        &sizes,
        &kinds,
        &kids as &[&[u8]],
        &bytes as &[&[u8]]
    )
    .execute(pool)
    .await;
    match kept {
        Ok(_) => Ok(()),
        Err(sqlx::Error::Database(answer)) if answer.is_foreign_key_violation() => {
            Err(StoreError::Refused(format!("of these sizes, one was never committed: {sizes:?}")))
        }
        Err(error) => Err(store_error(error)),
    }
}

pub(crate) async fn signature(
    pool: &PgPool,
    size: TreeSize,
    kind: SignatureKind,
    kid: &[u8],
) -> Result<Option<HeadSignature>, StoreError> {
    sqlx::query_as!(
        SignatureRow,
        "SELECT size, kind, kid, bytes FROM head_signature
          WHERE size = $1 AND kind = $2 AND kid = $3",
        column(size.get()),
        kind_column(kind),
        kid
    )
    .fetch_optional(pool)
    .await
    .map_err(store_error)?
    .map(HeadSignature::try_from)
    .transpose()
}

pub(crate) async fn newest_signed(
    pool: &PgPool,
    kind: SignatureKind,
) -> Result<Option<SignedHead>, StoreError> {
    let row = sqlx::query!(
        "SELECT batch.batch, batch.epoch, batch.size, batch.root, batch.at, newest.kid, newest.bytes
           FROM (SELECT size, kid, bytes FROM head_signature WHERE kind = $1
                  ORDER BY size DESC, kid DESC LIMIT 1) AS newest
           JOIN batch ON batch.size = newest.size",
        kind_column(kind)
    )
    .fetch_optional(pool)
    .await
    .map_err(store_error)?;
    let Some(row) = row else { return Ok(None) };
    let head: CommittedHead =
        BatchRow { batch: row.batch, epoch: row.epoch, size: row.size, root: row.root, at: row.at }
            .try_into()?;
    let signature = HeadSignature { size: head.size, kind, kid: row.kid, bytes: row.bytes.into() };
    Ok(Some(SignedHead { head, signature }))
}

/// Reads a page of signatures. Those of one head are never split, so a page can be longer than `limit`.
pub(crate) async fn signatures(
    pool: &PgPool,
    after: Option<TreeSize>,
    limit: usize,
) -> Result<Vec<HeadSignature>, StoreError> {
    sqlx::query_as!(
        SignatureRow,
        "SELECT size, kind, kid, bytes FROM head_signature
          WHERE size > $1
            AND size <= (SELECT max(size) FROM (SELECT size FROM head_signature WHERE size > $1
                                                 ORDER BY size LIMIT $2) AS page)
          ORDER BY size, kind, kid",
        after.map_or(-1, |size| column(size.get())),
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(HeadSignature::try_from)
    .collect()
}
