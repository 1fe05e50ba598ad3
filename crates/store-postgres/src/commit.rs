//! `LogWriter::commit`: one transaction, the only one that appends to the history.
//!
//! The head row is locked first, so a concurrent take-over waits for the batch and sees it. All rows are inserted by
//! UNNEST in the statement that moves the head (`rows`), and not by COPY: a backend stalled in COPY ignores every
//! timeout while it holds the head row. A batch that needs no other statement is committed by this one.

pub(crate) mod fill;
mod rows;

use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection, PgTransaction};
use store::{Batch, CommitError, Effect, Head, StorageFault, StoreError};
use tokio::time::timeout;

use self::rows::Appended;
use crate::custody;
use crate::durability;
use crate::error::{is_aborted, is_worth_another_try, store_error, too_late, violated};
use crate::head::{self, end_log};
use crate::limits;
use crate::notices::{ServerWarnings, warned};
use crate::number::column;
use crate::session::Server;

/// Value of `log.holder` after an entry froze the log.
const FROZEN_BY: &str = "the operator's freeze";

/// Session that commits, kept between batches. A caller takes it out and puts it back only when it is known to be
/// idle, so a cancelled caller leaves no session with an open transaction.
#[derive(Debug)]
pub(crate) struct Sequencing {
    session: tokio::sync::Mutex<Option<IdleSession>>,
    warnings: ServerWarnings,
    commit_timeout: Duration,
}

#[derive(Debug)]
struct IdleSession {
    connection: PgConnection,
    since: Instant,
}

impl Sequencing {
    pub(crate) fn new(warnings: ServerWarnings, commit_timeout: Duration) -> Self {
        Self { session: tokio::sync::Mutex::new(None), warnings, commit_timeout }
    }

    pub(crate) async fn commit(&self, server: &Server, batch: &Batch) -> Result<(), CommitError> {
        let mut session = self.session.lock().await;
        for _ in 1..limits::APPEND_TRIES {
            match self.try_commit(&mut session, server, batch).await {
                Err(CommitFailure::Passing(error)) => tracing::warn!(%error, "a batch is retried"),
                outcome => return outcome.map_err(CommitError::from),
            }
        }
        self.try_commit(&mut session, server, batch).await.map_err(CommitError::from)
    }

    async fn try_commit(
        &self,
        session: &mut Option<IdleSession>,
        server: &Server,
        batch: &Batch,
    ) -> Result<(), CommitFailure> {
        let mut connection = connected(session.take(), server).await?;
        let (outcome, is_idle) = match is_one_statement(batch) {
            true => self.commit_statement(&mut connection, batch).await,
            false => self.commit_transaction(&mut connection, batch).await,
        };
        if is_idle && !began_read_only(&outcome) {
            *session = Some(IdleSession { connection, since: Instant::now() });
        }
        outcome
    }

    /// Commits a batch as one statement, which is its own transaction: one round trip instead of three. Only an answer
    /// proves an outcome. Returns also whether the session is idle.
    async fn commit_statement(
        &self,
        connection: &mut PgConnection,
        batch: &Batch,
    ) -> (Result<(), CommitFailure>, bool) {
        let statement = self.warnings.during(append_rows(connection, batch));
        match timeout(self.commit_timeout, statement).await {
            Ok((Ok(true), None)) => (Ok(()), true),
            Ok((Ok(true), Some(warning))) => (Err(unknown(warned(&warning))), false),
            Ok((Ok(false), _)) => (Err(other_head(connection, batch).await), true),
            Ok((Err(CommitFailure::NoAnswer(error)), _)) => (Err(unknown(error.to_string())), false),
            Ok((Err(failed), _)) => (Err(failed), true),
            Err(_) => (Err(unknown("the statement of a batch was not answered in time".into())), false),
        }
    }

    /// Commits a batch of several statements. Until COMMIT is sent the batch has had no effect; after that, only an
    /// acknowledgement without a warning proves that it is committed. Returns also whether the session is idle.
    async fn commit_transaction(
        &self,
        connection: &mut PgConnection,
        batch: &Batch,
    ) -> (Result<(), CommitFailure>, bool) {
        let mut transaction = match timeout(limits::BEGIN, connection.begin()).await {
            Ok(Ok(transaction)) => transaction,
            // The server may have been restarted since the last batch.
            Ok(Err(error)) => return (Err(CommitFailure::Passing(error)), false),
            Err(_) => return (Err(too_late("beginning a batch").into()), false),
        };
        let appended = timeout(limits::APPEND, append(&mut transaction, batch)).await;
        if let Err(failed) = appended.unwrap_or_else(|_| Err(too_late("a batch").into())) {
            let rolled_back = timeout(limits::BEGIN, transaction.rollback()).await;
            return (Err(failed), matches!(rolled_back, Ok(Ok(()))));
        }
        match timeout(self.commit_timeout, self.warnings.during(transaction.commit())).await {
            Ok((Ok(()), None)) => (Ok(()), true),
            Ok((Ok(()), Some(warning))) => (Err(unknown(warned(&warning))), false),
            Ok((Err(error), _)) => (Err(unknown(error.to_string())), false),
            Err(_) => (Err(unknown("COMMIT was not answered in time".into())), false),
        }
    }
}

/// Returns the kept session, or a new one. One that was idle for long is tried first: a batch that is sent to a server that
/// has been restarted since then would be of unknown outcome.
async fn connected(kept: Option<IdleSession>, server: &Server) -> Result<PgConnection, StoreError> {
    if let Some(IdleSession { mut connection, since }) = kept
        && (since.elapsed() < limits::USED_LATELY
            || matches!(timeout(limits::BEGIN, connection.ping()).await, Ok(Ok(()))))
    {
        return Ok(connection);
    }
    let opened = timeout(limits::ANSWER, durability::connect(server)).await;
    opened.map_err(|_| too_late("opening a session for batches"))?
}

/// Returns whether the session takes no writes. Another one may: a session keeps the `default_transaction_read_only` with
/// which it began.
fn began_read_only(outcome: &Result<(), CommitFailure>) -> bool {
    let read_only = |error: &StoreError| matches!(error, StoreError::Storage(StorageFault::ReadOnly, _));
    matches!(outcome, Err(CommitFailure::For(CommitError::NotCommitted(error))) if read_only(error))
}

/// Returns whether [`append_rows`] is all that the batch needs.
fn is_one_statement(batch: &Batch) -> bool {
    let has_collateral = batch.entries.iter().any(|entry| !entry.collateral.is_empty());
    batch.settled.is_empty() && batch.effects.is_empty() && !has_collateral
}

fn unknown(why: String) -> CommitFailure {
    CommitFailure::For(CommitError::Unknown(why))
}

/// Reason why one attempt to commit failed.
enum CommitFailure {
    /// A cause that another attempt may not meet; nothing was changed.
    Passing(sqlx::Error),
    /// The session was lost before it answered. Nothing was changed, unless the statement was its own transaction.
    NoAnswer(sqlx::Error),
    For(CommitError),
}

impl From<CommitFailure> for CommitError {
    fn from(failed: CommitFailure) -> Self {
        match failed {
            CommitFailure::Passing(error) | CommitFailure::NoAnswer(error) => {
                Self::NotCommitted(store_error(error))
            }
            CommitFailure::For(error) => error,
        }
    }
}

impl From<StoreError> for CommitFailure {
    fn from(error: StoreError) -> Self {
        Self::For(CommitError::NotCommitted(error))
    }
}

impl From<sqlx::Error> for CommitFailure {
    fn from(error: sqlx::Error) -> Self {
        match violated(&error) {
            _ if !is_aborted(&error) => Self::NoAnswer(error),
            Some("seen_pkey") => Self::For(CommitError::AlreadySeen),
            Some("guard_pkey") => Self::For(CommitError::GuardTaken),
            Some(constraint) => Self::For(CommitError::NotCommitted(StoreError::Damaged(format!(
                "rows beyond the head: {constraint} is violated"
            )))),
            None if is_worth_another_try(&error) => Self::Passing(error),
            None => store_error(error).into(),
        }
    }
}

/// Appends a batch's rows and moves the head; returns false if the batch does not follow the head in force.
async fn append_rows(connection: &mut PgConnection, batch: &Batch) -> Result<bool, CommitFailure> {
    let head = batch.to.committed();
    let heads = if batch.entries.is_empty() { &[][..] } else { std::slice::from_ref(&head) };
    let rows = Appended { from: &batch.from, batch, heads, signatures: &batch.signatures, filling: None };
    rows::append(connection, &rows).await
}

/// Performs all steps of a batch except COMMIT.
async fn append(transaction: &mut PgTransaction<'_>, batch: &Batch) -> Result<(), CommitFailure> {
    if !append_rows(transaction, batch).await? {
        return Err(other_head(transaction, batch).await);
    }
    settle(transaction, batch).await?;
    take_effects(transaction, batch).await
}

/// Writes the batch's [`Effect`]s, after its entries and its head.
async fn take_effects(transaction: &mut PgTransaction<'_>, batch: &Batch) -> Result<(), CommitFailure> {
    let at = batch.to.at;
    for effect in &batch.effects {
        match effect {
            Effect::Freeze => end_log(transaction, FROZEN_BY, at).await?,
            Effect::Hold { entry, case } => custody::begin_hold(transaction, *entry, case, at).await?,
            Effect::Release { entry, case } => {
                custody::end_hold(&mut **transaction, *entry, case, at).await?;
            }
        }
    }
    Ok(())
}

/// Returns the reason why the batch does not follow the head in force.
async fn other_head(connection: &mut PgConnection, batch: &Batch) -> CommitFailure {
    let head = match grown_head(connection).await {
        Ok(head) => head,
        Err(error) => return error.into(),
    };
    tracing::error!(
        ours.epoch = batch.from.epoch, ours.size = batch.from.size().get(), ours.root = %batch.from.root(),
        theirs.epoch = head.epoch, theirs.size = head.size().get(), theirs.root = %head.root(),
        "the database holds another head than this process"
    );
    CommitFailure::For(CommitError::Fenced)
}

/// Reads the head of a log that grows; an error for one that is frozen or being filled.
async fn grown_head(connection: &mut PgConnection) -> Result<Head, StoreError> {
    let row = head::read_row(&mut *connection).await?;
    row.must_grow()?;
    row.into_head()
}

/// Inserts the outcome of the inbox attempts that this batch ends; digests without a pending attempt are skipped.
async fn settle(transaction: &mut PgTransaction<'_>, batch: &Batch) -> Result<(), CommitFailure> {
    if batch.settled.is_empty() {
        return Ok(());
    }
    let digests: Vec<&[u8]> = batch.settled.iter().map(|(digest, _)| digest.as_bytes().as_slice()).collect();
    let indices: Vec<i64> = batch.settled.iter().map(|(_, index)| column(index.get())).collect();
    sqlx::query!(
        "INSERT INTO inbox_outcome (digest, attempt, idx)
         SELECT inbox.digest, inbox.attempt, settled.idx
           FROM UNNEST($1::bytea[], $2::bigint[]) AS settled (digest, idx)
           JOIN inbox ON inbox.digest = settled.digest
             ON CONFLICT (digest, attempt) DO NOTHING",
        &digests as &[&[u8]],
        &indices
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
