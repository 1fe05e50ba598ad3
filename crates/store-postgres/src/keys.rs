//! The keys that sign heads, and `KeyRotation`.

use bytes::Bytes;
use merkle::TreeSize;
use sqlx::{PgExecutor, PgPool, PgTransaction};
use store::rotation::{already_listed, fenced, no_such_key, not_in_force};
use store::{KeyAnnouncement, LogKey, StoreError};

use crate::error::store_error;
use crate::head::{HeadRow, not_open};
use crate::number::{column, number};

pub(crate) async fn keep(executor: impl PgExecutor<'_>, log: i16, key: &LogKey) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO log_key (log_id, kid, public, from_size, retired_at, retired_size, compromised_size)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (log_id, kid) DO NOTHING",
        log,
        key.kid,
        key.public.as_ref(),
        size(key.from_size),
        key.retired_at.map(column),
        key.retired_size.map(size),
        key.compromised_size.map(size)
    )
    .execute(executor)
    .await
    .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn list(executor: impl PgExecutor<'_>, log: i16) -> Result<Vec<LogKey>, StoreError> {
    let rows = sqlx::query!(
        "SELECT kid, public, from_size, retired_at, retired_size, compromised_size
           FROM log_key WHERE log_id = $1 ORDER BY from_size, no",
        log
    );
    let rows = rows.fetch_all(executor).await.map_err(store_error)?.into_iter().map(|row| {
        Ok(LogKey {
            kid: row.kid,
            public: Bytes::from(row.public),
            from_size: TreeSize::new(number(row.from_size)?),
            retired_at: row.retired_at.map(number).transpose()?,
            retired_size: row.retired_size.map(number).transpose()?.map(TreeSize::new),
            compromised_size: row.compromised_size.map(number).transpose()?.map(TreeSize::new),
        })
    });
    rows.collect()
}

pub(crate) async fn announce(
    pool: &PgPool,
    log: i16,
    announcement: &KeyAnnouncement,
) -> Result<(), StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    lock_head(&mut transaction, log).await?;
    let keys = list(&mut *transaction, log).await?;
    if keys.iter().any(|key| key.kid == announcement.kid) {
        return Err(already_listed());
    }
    if !keys.iter().any(|key| key.kid == announcement.replaces && key.retired_at.is_none()) {
        return Err(not_in_force());
    }
    sqlx::query!(
        "INSERT INTO key_announcement (log_id, replaces, kid, public, at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (log_id, replaces)
         DO UPDATE SET kid = excluded.kid, public = excluded.public, at = excluded.at",
        log,
        announcement.replaces,
        announcement.kid,
        announcement.public.as_ref(),
        column(announcement.at)
    )
    .execute(&mut *transaction)
    .await
    .map_err(store_error)?;
    transaction.commit().await.map_err(store_error)
}

pub(crate) async fn announced(
    executor: impl PgExecutor<'_>,
    log: i16,
) -> Result<Vec<KeyAnnouncement>, StoreError> {
    let rows = sqlx::query!(
        "SELECT kid, public, replaces, at FROM key_announcement WHERE log_id = $1 ORDER BY at, kid",
        log
    );
    let rows = rows.fetch_all(executor).await.map_err(store_error)?.into_iter().map(|row| {
        let at = number(row.at)?;
        Ok(KeyAnnouncement { kid: row.kid, public: Bytes::from(row.public), replaces: row.replaces, at })
    });
    rows.collect()
}

/// Takes up an announced key. The lock on the head's row excludes commits and take-overs until the keys are written.
pub(crate) async fn take_up(
    pool: &PgPool,
    log: i16,
    kid: &[u8],
    (epoch, at): (u64, u64),
) -> Result<Option<LogKey>, StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    let head = lock_head(&mut transaction, log).await?;
    if head.epoch != epoch {
        return Err(fenced(epoch, head.epoch));
    }
    let announced = announced(&mut *transaction, log).await?;
    let Some(announcement) = announced.into_iter().find(|known| known.kid == kid) else { return Ok(None) };
    let from = TreeSize::new(head.size().get() + 1);
    replace(&mut transaction, log, &announcement.replaces, (from, at)).await?;
    let key = LogKey::new(announcement.kid, announcement.public, from);
    keep(&mut *transaction, log, &key).await?;
    transaction.commit().await.map_err(store_error)?;
    Ok(Some(key))
}

async fn lock_head(transaction: &mut PgTransaction<'_>, log: i16) -> Result<store::Head, StoreError> {
    let row = sqlx::query_as!(
        HeadRow,
        "SELECT epoch, size, root, edge, batch, at, policy, frozen_at, filling
           FROM log WHERE log_id = $1 FOR UPDATE",
        log
    );
    let row = row.fetch_optional(&mut **transaction).await.map_err(store_error)?.ok_or_else(not_open)?;
    row.must_grow()?;
    row.into_head()
}

/// Retires a key and removes the announcement of its successor.
async fn replace(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    old: &[u8],
    (from, at): (TreeSize, u64),
) -> Result<(), StoreError> {
    sqlx::query!(
        "UPDATE log_key SET retired_at = $3, retired_size = $4 WHERE log_id = $1 AND kid = $2",
        log,
        old,
        column(at),
        size(from)
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    sqlx::query!("DELETE FROM key_announcement WHERE log_id = $1 AND replaces = $2", log, old)
        .execute(&mut **transaction)
        .await
        .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn mark_compromised(
    pool: &PgPool,
    log: i16,
    kid: &[u8],
    since: TreeSize,
) -> Result<(), StoreError> {
    let marked = sqlx::query!(
        "UPDATE log_key SET compromised_size = least(compromised_size, $3) WHERE log_id = $1 AND kid = $2",
        log,
        kid,
        size(since)
    );
    let marked = marked.execute(pool).await.map_err(store_error)?;
    if marked.rows_affected() == 1 { Ok(()) } else { Err(no_such_key()) }
}

fn size(size: TreeSize) -> i64 {
    column(size.get())
}
