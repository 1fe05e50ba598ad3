//! The keys that sign heads, and `KeyRotation`.

use bytes::Bytes;
use merkle::TreeSize;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Row, SqliteConnection, SqliteExecutor};
use store::rotation::{already_listed, fenced, no_such_key, not_in_force};
use store::{KeyAnnouncement, LogKey, StoreError};

use crate::reader::{self, blob, number};
use crate::sql::{signed, store_error, unsigned};
use crate::transaction::{self, IMMEDIATE};
use crate::{Sqlite, log_state};

pub(crate) async fn keep(pool: &SqlitePool, key: &LogKey) -> Result<(), StoreError> {
    insert(pool, key).await
}

async fn insert(executor: impl SqliteExecutor<'_>, key: &LogKey) -> Result<(), StoreError> {
    let query = sqlx::query(
        "INSERT INTO log_key (kid, public, from_size, retired_at, retired_size, compromised_size)
         VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (kid) DO NOTHING",
    );
    let query = query.bind(&key.kid[..]).bind(&key.public[..]).bind(signed(key.from_size.get()));
    let query = query.bind(key.retired_at.map(signed)).bind(key.retired_size.map(size));
    query.bind(key.compromised_size.map(size)).execute(executor).await.map(drop).map_err(store_error)
}

pub(crate) async fn list(executor: impl SqliteExecutor<'_>) -> Result<Vec<LogKey>, StoreError> {
    let query = sqlx::query(
        "SELECT kid, public, from_size, retired_at, retired_size, compromised_size
         FROM log_key ORDER BY from_size, rowid",
    );
    let key = |row: &SqliteRow| {
        Ok(LogKey {
            kid: blob(row, 0)?.to_vec(),
            public: Bytes::copy_from_slice(blob(row, 1)?),
            from_size: TreeSize::new(number(row, 2)?),
            retired_at: maybe(row, 3)?,
            retired_size: maybe(row, 4)?.map(TreeSize::new),
            compromised_size: maybe(row, 5)?.map(TreeSize::new),
        })
    };
    query.fetch_all(executor).await.map_err(store_error)?.iter().map(key).collect()
}

pub(crate) async fn announce(store: &Sqlite, announcement: &KeyAnnouncement) -> Result<(), StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    log_state::must_grow(&mut *transaction).await?;
    let keys = list(&mut *transaction).await?;
    if keys.iter().any(|key| key.kid == announcement.kid) {
        return Err(already_listed());
    }
    if !keys.iter().any(|key| key.kid == announcement.replaces && key.retired_at.is_none()) {
        return Err(not_in_force());
    }
    let query = sqlx::query(
        "INSERT INTO key_announcement (replaces, kid, public, at) VALUES (?, ?, ?, ?)
         ON CONFLICT (replaces) DO UPDATE SET kid = excluded.kid, public = excluded.public, at = excluded.at",
    );
    let query = query.bind(&announcement.replaces[..]).bind(&announcement.kid[..]);
    let query = query.bind(&announcement.public[..]).bind(signed(announcement.at));
    query.execute(&mut *transaction).await.map_err(store_error)?;
    transaction::finish(store, transaction).await
}

pub(crate) async fn announced(executor: impl SqliteExecutor<'_>) -> Result<Vec<KeyAnnouncement>, StoreError> {
    let query = sqlx::query("SELECT kid, public, replaces, at FROM key_announcement ORDER BY at, kid");
    let announcement = |row: &SqliteRow| {
        Ok(KeyAnnouncement {
            kid: blob(row, 0)?.to_vec(),
            public: Bytes::copy_from_slice(blob(row, 1)?),
            replaces: blob(row, 2)?.to_vec(),
            at: number(row, 3)?,
        })
    };
    query.fetch_all(executor).await.map_err(store_error)?.iter().map(announcement).collect()
}

pub(crate) async fn take_up(
    store: &Sqlite,
    kid: &[u8],
    epoch: u64,
    at: u64,
) -> Result<Option<LogKey>, StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    log_state::must_grow(&mut *transaction).await?;
    let head = reader::head(&mut *transaction).await?;
    if head.epoch != epoch {
        return Err(fenced(epoch, head.epoch));
    }
    let announced = announced(&mut *transaction).await?;
    let Some(announcement) = announced.into_iter().find(|known| known.kid == kid) else { return Ok(None) };
    let from = TreeSize::new(head.size().get() + 1);
    replace(&mut transaction, &announcement.replaces, from, at).await?;
    let key = LogKey::new(announcement.kid, announcement.public, from);
    insert(&mut *transaction, &key).await?;
    transaction::finish(store, transaction).await?;
    Ok(Some(key))
}

/// Retires a key and removes the announcement of its successor.
async fn replace(
    connection: &mut SqliteConnection,
    old: &[u8],
    from: TreeSize,
    at: u64,
) -> Result<(), StoreError> {
    let retire = sqlx::query("UPDATE log_key SET retired_at = ?, retired_size = ? WHERE kid = ?");
    let retire = retire.bind(signed(at)).bind(size(from)).bind(old);
    retire.execute(&mut *connection).await.map_err(store_error)?;
    let forget = sqlx::query("DELETE FROM key_announcement WHERE replaces = ?").bind(old);
    forget.execute(connection).await.map(drop).map_err(store_error)
}

pub(crate) async fn mark_compromised(
    pool: &SqlitePool,
    kid: &[u8],
    since: TreeSize,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "UPDATE log_key SET compromised_size = min(coalesce(compromised_size, ?1), ?1) WHERE kid = ?2",
    );
    let marked = query.bind(size(since)).bind(kid).execute(pool).await.map_err(store_error)?;
    if marked.rows_affected() == 1 { Ok(()) } else { Err(no_such_key()) }
}

fn size(size: TreeSize) -> i64 {
    signed(size.get())
}

fn maybe(row: &SqliteRow, column: usize) -> Result<Option<u64>, StoreError> {
    row.try_get::<Option<i64>, _>(column).map_err(store_error)?.map(unsigned).transpose()
}
