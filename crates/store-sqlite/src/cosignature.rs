//! `Cosignatures` in SQLite.

use bytes::Bytes;
use merkle::TreeSize;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use store::{Cosignature, StoreError};

use crate::reader::{blob, number};
use crate::sql::{self, signed, store_error};

pub(crate) async fn keep(pool: &SqlitePool, cosignature: &Cosignature) -> Result<(), StoreError> {
    let query = sqlx::query(
        "INSERT INTO cosignature (size, witness, at, line) VALUES (?, ?, ?, ?)
         ON CONFLICT (size, witness) DO UPDATE SET at = excluded.at, line = excluded.line
         WHERE excluded.at > cosignature.at",
    );
    let query = query.bind(signed(cosignature.size.get())).bind(&cosignature.witness[..]);
    let query = query.bind(signed(cosignature.at)).bind(&cosignature.line[..]);
    match query.execute(pool).await {
        Ok(_) => Ok(()),
        Err(error) if sql::is_constraint(&error) => {
            Err(StoreError::Refused(format!("no head of size {} was committed", cosignature.size)))
        }
        Err(error) => Err(store_error(error)),
    }
}

pub(crate) async fn of_size(pool: &SqlitePool, size: TreeSize) -> Result<Vec<Cosignature>, StoreError> {
    let query =
        sqlx::query("SELECT size, witness, at, line FROM cosignature WHERE size = ? ORDER BY witness");
    let rows = query.bind(signed(size.get())).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(cosignature).collect()
}

pub(crate) async fn newest(pool: &SqlitePool, witness: &[u8]) -> Result<Option<Cosignature>, StoreError> {
    let query = sqlx::query(
        "SELECT size, witness, at, line FROM cosignature WHERE witness = ? ORDER BY size DESC LIMIT 1",
    );
    let row = query.bind(witness).fetch_optional(pool).await.map_err(store_error)?;
    row.as_ref().map(cosignature).transpose()
}

pub(crate) async fn below(
    pool: &SqlitePool,
    below: Option<TreeSize>,
    limit: usize,
) -> Result<Vec<Cosignature>, StoreError> {
    let query = sqlx::query(
        "SELECT size, witness, at, line FROM cosignature
         WHERE size < ?1 AND size >= (SELECT min(size) FROM
           (SELECT size FROM cosignature WHERE size < ?1 ORDER BY size DESC LIMIT ?2))
         ORDER BY size DESC, witness",
    );
    let query = query.bind(below.map_or(i64::MAX, |size| signed(size.get()))).bind(signed(limit as u64));
    query.fetch_all(pool).await.map_err(store_error)?.iter().map(cosignature).collect()
}

fn cosignature(row: &SqliteRow) -> Result<Cosignature, StoreError> {
    Ok(Cosignature {
        size: TreeSize::new(number(row, 0)?),
        witness: blob(row, 1)?.to_vec(),
        at: number(row, 2)?,
        line: Bytes::copy_from_slice(blob(row, 3)?),
    })
}
