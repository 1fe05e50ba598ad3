//! The transaction that appends a batch, and the epoch that decides which process may send it.

use merkle::CompactRange;
use sqlx::{Row, SqliteConnection};
use store::moving::half_filled;
use store::{Batch, CommitError, Head, State, StoreError};

use crate::rows::Rows;
use crate::transaction::{self, IMMEDIATE};
use crate::{Sqlite, journal, log_state, reader, sql};

/// Inserts the log's row if there is none.
pub(crate) async fn make(store: &Sqlite, origin: &str) -> Result<(), StoreError> {
    if store.shared.place.is_some() {
        let insert = sqlx::query(
            "INSERT INTO log (one, origin, epoch, size, root, edge, batch, at, policy, holder)
             VALUES (1, ?, 0, 0, ?, x'', 0, 0, 0, '') ON CONFLICT DO NOTHING",
        );
        let root = CompactRange::empty().root();
        insert
            .bind(origin)
            .bind(&root.as_bytes()[..])
            .execute(store.writable().await?)
            .await
            .map_err(sql::store_error)?;
    }
    Ok(())
}

pub(crate) async fn open(store: &Sqlite, origin: &str) -> Result<Head, StoreError> {
    make(store, origin).await?;
    let known: Option<String> = sqlx::query_scalar("SELECT origin FROM log")
        .fetch_optional(store.write.pool())
        .await
        .map_err(sql::store_error)?;
    match known {
        Some(known) if known == origin => match log_state::state(store.write.pool()).await? {
            State::Filling { .. } => Err(half_filled()),
            State::Open | State::Frozen { .. } => reader::head(store.write.pool()).await,
        },
        Some(known) => Err(StoreError::Refused(format!("the database holds the log {known}, not {origin}"))),
        None => Err(StoreError::NoLog("the database holds no log".into())),
    }
}

pub(crate) async fn take_over(store: &Sqlite, holder: &str) -> Result<Head, StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(sql::store_error)?;
    log_state::must_grow(&mut *transaction).await?;
    let update = sqlx::query("UPDATE log SET epoch = epoch + 1, holder = ?").bind(holder);
    update.execute(&mut *transaction).await.map_err(sql::store_error)?;
    let head = reader::head(&mut *transaction).await?;
    transaction::finish(store, transaction).await?;
    Ok(head)
}

pub(crate) async fn commit(store: &Sqlite, batch: &Batch) -> Result<(), CommitError> {
    batch.check().map_err(CommitError::NotCommitted)?;
    let pool = store.writable().await.map_err(CommitError::NotCommitted)?;
    let mut rows = Rows::of_transaction();
    rows.append(batch).map_err(CommitError::NotCommitted)?;
    match rows.commit(store).await {
        Err(CommitError::Fenced) => {
            log_state::must_grow(pool).await.map_err(CommitError::NotCommitted)?;
            return Err(CommitError::Fenced);
        }
        outcome => outcome?,
    }
    journal::checkpoint(store).await;
    Ok(())
}

pub(crate) async fn check_durability(store: &Sqlite) -> Result<(), StoreError> {
    let mut connection = store.writable().await?.acquire().await.map_err(sql::store_error)?;
    let journal = if store.shared.wal { "wal" } else { "delete" };
    expect_pragma(&mut connection, "PRAGMA journal_mode", journal).await?;
    expect_pragma(&mut connection, "PRAGMA synchronous", "2").await?;
    expect_pragma(&mut connection, "PRAGMA secure_delete", "1").await?;
    expect_pragma(&mut connection, "PRAGMA foreign_keys", "1").await?;
    expect_pragma(&mut connection, "PRAGMA recursive_triggers", "1").await
}

async fn expect_pragma(
    connection: &mut SqliteConnection,
    pragma: &'static str,
    expected: &str,
) -> Result<(), StoreError> {
    let row = sqlx::query(pragma).fetch_one(connection).await.map_err(sql::store_error)?;
    let number = row.try_get_unchecked::<i64, _>(0).map(|number| number.to_string());
    let found = row.try_get::<String, _>(0).or(number).map_err(sql::store_error)?;
    if found == expected {
        return Ok(());
    }
    Err(StoreError::Refused(format!("SQLite answers {found} to {pragma}, and a log needs {expected}")))
}
