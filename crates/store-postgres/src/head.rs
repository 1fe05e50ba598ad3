//! The log's one mutable row: inserted once, read, taken over, and frozen.

use std::pin::pin;

use merkle::{CompactRange, Hash, LeafIndex, TreeSize};
use sqlx::{Connection, PgConnection, PgExecutor, PgPool, PgTransaction};
use store::moving::half_filled;
use store::{Head, StoreError};
use tokio::time::{sleep, timeout};

use crate::error::{store_error, too_late};
use crate::limits;
use crate::notices::ServerWarnings;
use crate::number::{column, number};
use crate::session::{self, Server, close};

/// Columns of the table `log`, except key, origin and holder.
pub(crate) struct HeadRow {
    pub(crate) epoch: i64,
    pub(crate) size: i64,
    pub(crate) root: Vec<u8>,
    pub(crate) edge: Vec<u8>,
    pub(crate) batch: i64,
    pub(crate) at: i64,
    pub(crate) policy: i64,
    pub(crate) frozen_at: Option<i64>,
    pub(crate) filling: Option<Vec<u8>>,
}

impl HeadRow {
    /// Refuses a log that is frozen or being filled.
    pub(crate) fn must_grow(&self) -> Result<(), StoreError> {
        match (&self.filling, self.frozen_at) {
            (Some(_), _) => Err(half_filled()),
            (None, Some(_)) => Err(StoreError::Frozen),
            (None, None) => Ok(()),
        }
    }

    /// Converts the row to a [`Head`]; [`StoreError::Damaged`] if its root is not the root of its edge.
    pub(crate) fn into_head(self) -> Result<Head, StoreError> {
        let hashes = self.edge.as_chunks::<32>().0.iter().map(|hash| Hash::from_bytes(*hash)).collect();
        let edge = CompactRange::from_parts(TreeSize::new(number(self.size)?), hashes)
            .map_err(|error| StoreError::Damaged(format!("the right edge of the tree: {error}")))?;
        if edge.root().as_bytes().as_slice() != self.root {
            return Err(StoreError::Damaged("the root is not that of the right edge of the tree".into()));
        }
        Ok(Head {
            epoch: number(self.epoch)?,
            batch: number(self.batch)?,
            edge,
            at: number(self.at)?,
            policy: LeafIndex::new(number(self.policy)?),
        })
    }
}

/// Inserts the head of an empty log, unless there is a log.
pub(crate) async fn create(pool: &PgPool, origin: &str) -> Result<(), StoreError> {
    let root = CompactRange::empty().root();
    sqlx::query!(
        "INSERT INTO log (one, origin, epoch, size, root, edge, batch, at, policy, holder)
         VALUES (1, $1, 0, 0, $2, '', 0, 0, 0, '') ON CONFLICT (one) DO NOTHING",
        origin,
        root.as_bytes()
    )
    .execute(pool)
    .await
    .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn open(pool: &PgPool, origin: &str) -> Result<Head, StoreError> {
    let known =
        sqlx::query_scalar!("SELECT origin FROM log").fetch_optional(pool).await.map_err(store_error)?;
    let known = known.ok_or_else(not_open)?;
    if known != origin {
        return Err(StoreError::Refused(format!("the database holds the log {known}, not {origin}")));
    }
    let row = read_row(pool).await?;
    if row.filling.is_some() {
        return Err(half_filled());
    }
    row.into_head()
}

pub(crate) async fn read(pool: &PgPool) -> Result<Head, StoreError> {
    read_row(pool).await?.into_head()
}

pub(crate) async fn read_row(executor: impl PgExecutor<'_>) -> Result<HeadRow, StoreError> {
    sqlx::query_as!(HeadRow, "SELECT epoch, size, root, edge, batch, at, policy, frozen_at, filling FROM log")
        .fetch_optional(executor)
        .await
        .map_err(store_error)?
        .ok_or_else(not_open)
}

/// Locks the row until the end of the transaction.
pub(crate) async fn lock_row(transaction: &mut PgTransaction<'_>) -> Result<HeadRow, StoreError> {
    let row = sqlx::query_as!(
        HeadRow,
        "SELECT epoch, size, root, edge, batch, at, policy, frozen_at, filling
           FROM log FOR UPDATE"
    );
    row.fetch_optional(&mut **transaction).await.map_err(store_error)?.ok_or_else(not_open)
}

fn not_open() -> StoreError {
    StoreError::NoLog("the database holds no such log yet: open it first".into())
}

pub(crate) async fn take_over(
    server: &Server,
    warnings: &ServerWarnings,
    holder: &str,
) -> Result<Head, StoreError> {
    let row = raise(server, warnings, (holder, None)).await?;
    row.must_grow()?;
    row.into_head()
}

/// Freezes the log: a take-over that sets `frozen_at`, after which there is no other.
pub(crate) async fn freeze(
    server: &Server,
    warnings: &ServerWarnings,
    holder: &str,
    at: u64,
) -> Result<Head, StoreError> {
    let row = raise(server, warnings, (holder, Some(column(at)))).await?;
    match row.must_grow() {
        Err(StoreError::Frozen) => row.into_head(),
        Err(error) => Err(error),
        Ok(()) => Err(StoreError::Unavailable("the log was not frozen".into())),
    }
}

/// Raises the epoch. Uses a new connection, as the one of a racing commit may hang. Requires an acknowledgement
/// without a warning, as only then has every required standby the new row.
async fn raise(
    server: &Server,
    warnings: &ServerWarnings,
    whose: (&str, Option<i64>),
) -> Result<HeadRow, StoreError> {
    let mut connection = server.connect(&session::TAKE_OVER).await?;
    let row = timeout(limits::TAKE_OVER, insist(server, warnings, &mut connection, whose))
        .await
        .map_err(|_| too_late("taking over the log"))??;
    close(connection).await;
    Ok(row)
}

/// Raises the epoch, and after [`limits::PATIENCE`] terminates a batch that does not end by itself: a client that
/// stops within a statement holds the head row, and no timeout of the server covers that.
async fn insist(
    server: &Server,
    warnings: &ServerWarnings,
    connection: &mut PgConnection,
    whose: (&str, Option<i64>),
) -> Result<HeadRow, StoreError> {
    let backend = sqlx::query_scalar!(r#"SELECT pg_backend_pid() AS "backend!""#)
        .fetch_one(&mut *connection)
        .await
        .map_err(store_error)?;
    let mut raising = pin!(raise_epoch(connection, warnings, whose));
    tokio::select! {
        row = &mut raising => return row,
        () = sleep(limits::PATIENCE) => {}
    }
    let (row, ended) = tokio::join!(raising, end_stalled_batch(server, backend));
    // The result of the raise counts; an error of the termination only explains why there is none.
    row.map_err(|error| ended.err().unwrap_or(error))
}

/// Terminates the session that blocks `backend`, if that session commits batches.
async fn end_stalled_batch(server: &Server, backend: i32) -> Result<(), StoreError> {
    let mut connection = server.connect(&session::READER).await?;
    let ended = sqlx::query!(
        "SELECT activity.pid, pg_terminate_backend(activity.pid)
           FROM UNNEST(pg_blocking_pids($1)) AS blocking (pid)
           JOIN pg_stat_activity AS activity ON activity.pid = blocking.pid
          WHERE activity.application_name = $2",
        backend,
        session::SEQUENCER.name
    )
    .fetch_all(&mut connection)
    .await
    .map_err(store_error)?;
    tracing::warn!(sessions = ended.len(), "ended a batch that kept the take-over waiting");
    close(connection).await;
    Ok(())
}

/// Freezes the log in the transaction of a batch.
pub(crate) async fn end_log(
    transaction: &mut PgTransaction<'_>,
    holder: &str,
    at: u64,
) -> Result<(), StoreError> {
    match raised(transaction, (holder, Some(column(at)))).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::Frozen),
    }
}

/// Raises the epoch and sets `frozen_at`; `None` if the log is frozen or being filled.
async fn raised(
    transaction: &mut PgTransaction<'_>,
    (holder, freeze): (&str, Option<i64>),
) -> Result<Option<HeadRow>, StoreError> {
    sqlx::query_as!(
        HeadRow,
        "UPDATE log SET epoch = epoch + 1, holder = $1, frozen_at = $2
          WHERE frozen_at IS NULL AND filling IS NULL
         RETURNING epoch, size, root, edge, batch, at, policy, frozen_at, filling",
        holder,
        freeze
    )
    .fetch_optional(&mut **transaction)
    .await
    .map_err(store_error)
}

/// Returns the row after the raise; if the log is frozen or being filled, the unchanged row. That one is locked: perhaps
/// no standby has the freeze yet, and a lock on a row is a write, whose commit waits for the standbys.
async fn raise_epoch(
    connection: &mut PgConnection,
    warnings: &ServerWarnings,
    (holder, freeze): (&str, Option<i64>),
) -> Result<HeadRow, StoreError> {
    let mut transaction = connection.begin().await.map_err(store_error)?;
    let row = match raised(&mut transaction, (holder, freeze)).await? {
        Some(row) => row,
        None => lock_row(&mut transaction).await?,
    };
    warnings.acknowledged(transaction.commit()).await?;
    Ok(row)
}
