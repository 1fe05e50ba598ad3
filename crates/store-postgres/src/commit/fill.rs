//! `HistoryImport::fill`: writes committed history from elsewhere into an empty database.

use sqlx::{PgPool, PgTransaction};
use store::moving::{half_filled, not_empty, not_filling, other_claim};
use store::{CommitError, Cosignature, GuardRow, Head, History, SeenRow, Source, StoreError};
use uuid::Uuid;

use merkle::LeafIndex;

use super::rows::Appended;
use super::{CommitFailure, rows};
use crate::entry::guard_column;
use crate::error::store_error;
use crate::head::{self, HeadRow};
use crate::number::{column, number};

pub(crate) async fn begin(pool: &PgPool, origin: &str, source: &Source) -> Result<Head, StoreError> {
    head::create(pool, origin).await?;
    let row = head::read_row(pool).await?;
    let known = sqlx::query_scalar!("SELECT origin FROM log").fetch_one(pool).await.map_err(store_error)?;
    match &row.filling {
        Some(filling) if *filling == source.0 && known == origin => return row.into_head(),
        Some(_) => return Err(half_filled()),
        None => {}
    }
    let began = sqlx::query!(
        "UPDATE log SET filling = $2
          WHERE origin = $1 AND epoch = 0 AND batch = 0 AND filling IS NULL AND frozen_at IS NULL
            AND NOT EXISTS (SELECT FROM log_key)",
        origin,
        &source.0[..]
    )
    .execute(pool)
    .await
    .map_err(store_error)?;
    let head = row.into_head()?;
    if began.rows_affected() == 1 { Ok(head) } else { Err(not_empty(&known, head.size())) }
}

pub(crate) async fn history(pool: &PgPool, source: &Source, history: &History) -> Result<(), StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    let filled = append(&mut transaction, source, history).await;
    filled.map_err(|failed| match CommitError::from(failed) {
        CommitError::NotCommitted(error) => error,
        other => StoreError::Damaged(other.to_string()),
    })?;
    transaction.commit().await.map_err(store_error)
}

async fn append(
    transaction: &mut PgTransaction<'_>,
    source: &Source,
    history: &History,
) -> Result<(), CommitFailure> {
    let from = &history.batch.from;
    let head = filling(transaction, source).await?;
    if (head.batch, &head.edge) != (from.batch, &from.edge) {
        let why = "the database is not where this history begins".to_owned();
        return Err(StoreError::Refused(why).into());
    }
    let rows = Appended {
        from: &head,
        batch: &history.batch,
        heads: &history.heads,
        signatures: &history.signatures,
        filling: Some(&source.0),
    };
    if !rows::append(transaction, &rows).await? {
        return Err(not_filling().into());
    }
    insert_cosignatures(transaction, &history.cosignatures).await
}

async fn insert_cosignatures(
    transaction: &mut PgTransaction<'_>,
    cosignatures: &[Cosignature],
) -> Result<(), CommitFailure> {
    let sizes: Vec<i64> = cosignatures.iter().map(|it| column(it.size.get())).collect();
    let witnesses: Vec<&[u8]> = cosignatures.iter().map(|it| it.witness.as_slice()).collect();
    let times: Vec<i64> = cosignatures.iter().map(|it| column(it.at)).collect();
    let lines: Vec<&[u8]> = cosignatures.iter().map(|it| it.line.as_ref()).collect();
    sqlx::query!(
        "INSERT INTO cosignature (size, witness, at, line)
         SELECT * FROM UNNEST($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[])",
        &sizes,
        &witnesses as &[&[u8]],
        &times,
        &lines as &[&[u8]]
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

/// Locks and returns the head of a log that is being filled from this source.
async fn filling(transaction: &mut PgTransaction<'_>, source: &Source) -> Result<Head, StoreError> {
    let row = sqlx::query_as!(
        HeadRow,
        "SELECT epoch, size, root, edge, batch, at, policy, frozen_at, filling
           FROM log WHERE filling = $1 FOR UPDATE",
        &source.0[..]
    )
    .fetch_optional(&mut **transaction)
    .await
    .map_err(store_error)?;
    row.ok_or_else(not_filling)?.into_head()
}

pub(crate) async fn claims(
    pool: &PgPool,
    source: &Source,
    seen: &[SeenRow],
    guards: &[GuardRow],
) -> Result<(), StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    filling(&mut transaction, source).await?;
    add_seen(&mut transaction, seen).await?;
    add_guards(&mut transaction, guards).await?;
    transaction.commit().await.map_err(store_error)
}

async fn add_seen(transaction: &mut PgTransaction<'_>, seen: &[SeenRow]) -> Result<(), StoreError> {
    let keys: Vec<Uuid> = seen.iter().map(|(key, _)| Uuid::from_bytes(*key)).collect();
    let entries: Vec<i64> = seen.iter().map(|(_, entry)| column(entry.get())).collect();
    sqlx::query!(
        "INSERT INTO seen (key, idx) SELECT * FROM UNNEST($1::uuid[], $2::bigint[])
             ON CONFLICT (key) DO NOTHING",
        &keys,
        &entries
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    let other = sqlx::query_scalar!(
        r#"SELECT asked.idx AS "idx!" FROM UNNEST($1::uuid[], $2::bigint[]) AS asked (key, idx)
             JOIN seen ON seen.key = asked.key WHERE seen.idx <> asked.idx LIMIT 1"#,
        &keys,
        &entries
    )
    .fetch_optional(&mut **transaction)
    .await
    .map_err(store_error)?;
    contradicted(other)
}

async fn add_guards(transaction: &mut PgTransaction<'_>, guards: &[GuardRow]) -> Result<(), StoreError> {
    let keys: Vec<Vec<u8>> = guards.iter().map(|(key, _)| guard_column(key)).collect();
    let entries: Vec<i64> = guards.iter().map(|(_, entry)| column(entry.get())).collect();
    sqlx::query!(
        "INSERT INTO guard (key, idx) SELECT * FROM UNNEST($1::bytea[], $2::bigint[])
             ON CONFLICT (key) DO NOTHING",
        &keys,
        &entries
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    let other = sqlx::query_scalar!(
        r#"SELECT asked.idx AS "idx!" FROM UNNEST($1::bytea[], $2::bigint[]) AS asked (key, idx)
             JOIN guard ON guard.key = asked.key WHERE guard.idx <> asked.idx LIMIT 1"#,
        &keys,
        &entries
    )
    .fetch_optional(&mut **transaction)
    .await
    .map_err(store_error)?;
    contradicted(other)
}

fn contradicted(other: Option<i64>) -> Result<(), StoreError> {
    match other {
        None => Ok(()),
        Some(entry) => Err(other_claim(LeafIndex::new(number(entry)?))),
    }
}

pub(crate) async fn end(
    pool: &PgPool,
    source: &Source,
    epoch: u64,
    policy: LeafIndex,
) -> Result<Head, StoreError> {
    let ended = sqlx::query_as!(
        HeadRow,
        "UPDATE log SET filling = NULL, epoch = $2, policy = $3
          WHERE filling = $1 AND epoch <= $2 AND policy <= $3 AND $3 < size
         RETURNING epoch, size, root, edge, batch, at, policy, frozen_at, filling",
        &source.0[..],
        column(epoch),
        column(policy.get())
    )
    .fetch_optional(pool)
    .await
    .map_err(store_error)?;
    ended.ok_or_else(not_filling)?.into_head()
}
