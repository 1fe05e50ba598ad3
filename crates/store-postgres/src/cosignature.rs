//! `Cosignatures` in PostgreSQL.

use merkle::TreeSize;
use sqlx::PgPool;
use store::{Cosignature, StoreError};

use crate::error::store_error;
use crate::number::{column, number, rows};

struct CosignatureRow {
    size: i64,
    witness: Vec<u8>,
    at: i64,
    line: Vec<u8>,
}

impl TryFrom<CosignatureRow> for Cosignature {
    type Error = StoreError;

    fn try_from(row: CosignatureRow) -> Result<Self, StoreError> {
        Ok(Self {
            size: TreeSize::new(number(row.size)?),
            witness: row.witness,
            at: number(row.at)?,
            line: row.line.into(),
        })
    }
}

pub(crate) async fn keep(pool: &PgPool, cosignature: &Cosignature) -> Result<(), StoreError> {
    let kept = sqlx::query!(
        "INSERT INTO cosignature AS kept (size, witness, at, line) VALUES ($1, $2, $3, $4)
             ON CONFLICT (size, witness) DO UPDATE SET at = excluded.at, line = excluded.line
          WHERE excluded.at > kept.at",
        column(cosignature.size.get()),
        cosignature.witness,
        column(cosignature.at),
        cosignature.line.as_ref()
    )
    .execute(pool)
    .await;
    match kept {
        Ok(_) => Ok(()),
        Err(sqlx::Error::Database(answer)) if answer.is_foreign_key_violation() => {
            Err(StoreError::Refused(format!("no head of size {} was committed", cosignature.size)))
        }
        Err(error) => Err(store_error(error)),
    }
}

pub(crate) async fn of_size(pool: &PgPool, size: TreeSize) -> Result<Vec<Cosignature>, StoreError> {
    sqlx::query_as!(
        CosignatureRow,
        "SELECT size, witness, at, line FROM cosignature WHERE size = $1 ORDER BY witness",
        column(size.get())
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(Cosignature::try_from)
    .collect()
}

pub(crate) async fn newest(pool: &PgPool, witness: &[u8]) -> Result<Option<Cosignature>, StoreError> {
    sqlx::query_as!(
        CosignatureRow,
        "SELECT size, witness, at, line FROM cosignature WHERE witness = $1
          ORDER BY size DESC LIMIT 1",
        witness
    )
    .fetch_optional(pool)
    .await
    .map_err(store_error)?
    .map(Cosignature::try_from)
    .transpose()
}

pub(crate) async fn below(
    pool: &PgPool,
    below: Option<TreeSize>,
    limit: usize,
) -> Result<Vec<Cosignature>, StoreError> {
    sqlx::query_as!(
        CosignatureRow,
        "SELECT size, witness, at, line FROM cosignature
          WHERE size < $1
            AND size >= (SELECT min(size) FROM (SELECT size FROM cosignature WHERE size < $1
                                                 ORDER BY size DESC LIMIT $2) AS page)
          ORDER BY size DESC, witness",
        below.map_or(i64::MAX, |size| column(size.get())),
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(Cosignature::try_from)
    .collect()
}
