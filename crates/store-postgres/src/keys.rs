//! The keys that sign heads, and `KeyRotation`.

use bytes::Bytes;
use merkle::TreeSize;
use sqlx::{PgExecutor, PgPool, PgTransaction};
use store::rotation::{already_listed, fenced, no_such_key, not_in_force};
use store::{KeyAnnouncement, LogKey, StoreError};

use crate::error::store_error;
use crate::head::lock_row;
use crate::notices::ServerWarnings;
use crate::number::{column, number};

pub(crate) async fn keep(executor: impl PgExecutor<'_>, key: &LogKey) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO log_key (kid, public, from_size, retired_at, retired_size, compromised_size)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (kid) DO NOTHING",
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

pub(crate) async fn list(executor: impl PgExecutor<'_>) -> Result<Vec<LogKey>, StoreError> {
    let rows = sqlx::query!(
        "SELECT kid, public, from_size, retired_at, retired_size, compromised_size
           FROM log_key ORDER BY from_size, no"
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

pub(crate) async fn announce(pool: &PgPool, announcement: &KeyAnnouncement) -> Result<(), StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    lock_head(&mut transaction).await?;
    let keys = list(&mut *transaction).await?;
    if keys.iter().any(|key| key.kid == announcement.kid) {
        return Err(already_listed());
    }
    if !keys.iter().any(|key| key.kid == announcement.replaces && key.retired_at.is_none()) {
        return Err(not_in_force());
    }
    sqlx::query!(
        "INSERT INTO key_announcement (replaces, kid, public, at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (replaces)
         DO UPDATE SET kid = excluded.kid, public = excluded.public, at = excluded.at",
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

pub(crate) async fn announced(executor: impl PgExecutor<'_>) -> Result<Vec<KeyAnnouncement>, StoreError> {
    let rows = sqlx::query!("SELECT kid, public, replaces, at FROM key_announcement ORDER BY at, kid");
    let rows = rows.fetch_all(executor).await.map_err(store_error)?.into_iter().map(|row| {
        let at = number(row.at)?;
        Ok(KeyAnnouncement { kid: row.kid, public: Bytes::from(row.public), replaces: row.replaces, at })
    });
    rows.collect()
}

/// Takes up an announced key. The lock on the head's row excludes commits and take-overs until the keys are written.
pub(crate) async fn take_up(
    pool: &PgPool,
    warnings: &ServerWarnings,
    kid: &[u8],
    (epoch, at): (u64, u64),
) -> Result<Option<LogKey>, StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    let head = lock_head(&mut transaction).await?;
    if head.epoch != epoch {
        return Err(fenced(epoch, head.epoch));
    }
    let announced = announced(&mut *transaction).await?;
    let Some(announcement) = announced.into_iter().find(|known| known.kid == kid) else { return Ok(None) };
    let from = TreeSize::new(head.size().get() + 1);
    replace(&mut transaction, &announcement.replaces, (from, at)).await?;
    let key = LogKey::new(announcement.kid, announcement.public, from);
    keep(&mut *transaction, &key).await?;
    warnings.acknowledged(transaction.commit()).await?;
    Ok(Some(key))
}

async fn lock_head(transaction: &mut PgTransaction<'_>) -> Result<store::Head, StoreError> {
    let row = lock_row(transaction).await?;
    row.must_grow()?;
    row.into_head()
}

/// Retires a key and removes the announcement of its successor.
async fn replace(
    transaction: &mut PgTransaction<'_>,
    old: &[u8],
    (from, at): (TreeSize, u64),
) -> Result<(), StoreError> {
    sqlx::query!(
        "UPDATE log_key SET retired_at = $2, retired_size = $3 WHERE kid = $1",
        old,
        column(at),
        size(from)
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    sqlx::query!("DELETE FROM key_announcement WHERE replaces = $1", old)
        .execute(&mut **transaction)
        .await
        .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn mark_compromised(
    pool: &PgPool,
    warnings: &ServerWarnings,
    kid: &[u8],
    since: TreeSize,
) -> Result<(), StoreError> {
    let marked = sqlx::query!(
        "UPDATE log_key SET compromised_size = least(compromised_size, $2) WHERE kid = $1",
        kid,
        size(since)
    );
    // First a session: one that is opened may begin with a warning of its own.
    let mut session = pool.acquire().await.map_err(store_error)?;
    let marked = warnings.acknowledged(marked.execute(&mut *session)).await?;
    if marked.rows_affected() == 1 { Ok(()) } else { Err(no_such_key()) }
}

fn size(size: TreeSize) -> i64 {
    column(size.get())
}
