//! `LogWriter::commit`: one transaction, the only one that appends to the history.
//!
//! The head row is locked first, so a concurrent take-over waits for the batch and sees it. All rows are inserted by
//! UNNEST in the statement that moves the head (`rows`), and not by COPY: a backend stalled in COPY ignores every
//! timeout while it holds the head row. Until COMMIT is sent the batch has had no effect; after that, only an
//! acknowledgement without a warning proves that it is committed.

pub(crate) mod fill;
mod rows;

use std::time::Duration;

use sqlx::{Connection, PgConnection, PgTransaction};
use store::{Batch, CommitError, Effect, Head, StoreError};
use tokio::time::timeout;

use self::rows::Appended;
use crate::custody;
use crate::error::{is_worth_another_try, store_error, too_late, violated};
use crate::head::{self, end_log};
use crate::limits;
use crate::notices::ServerWarnings;
use crate::number::column;
use crate::session::{self, Server};

/// Value of `log.holder` after an entry froze the log.
const FROZEN_BY: &str = "the operator's freeze";

/// Session that commits, kept between batches. A caller takes it out and puts it back only when it is known to be
/// idle, so a cancelled caller leaves no session with an open transaction.
#[derive(Debug)]
pub(crate) struct Sequencing {
    session: tokio::sync::Mutex<Option<PgConnection>>,
    warnings: ServerWarnings,
    commit_timeout: Duration,
}

impl Sequencing {
    pub(crate) fn new(commit_timeout: Duration) -> Self {
        Self { session: tokio::sync::Mutex::new(None), warnings: ServerWarnings::new(), commit_timeout }
    }

    pub(crate) async fn commit(&self, server: &Server, log: i16, batch: &Batch) -> Result<(), CommitError> {
        let mut session = self.session.lock().await;
        for _ in 1..limits::APPEND_TRIES {
            match self.try_commit(&mut session, server, log, batch).await {
                Err(CommitFailure::Passing(error)) => tracing::warn!(%error, "a batch is tried again"),
                Err(CommitFailure::For(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
        self.try_commit(&mut session, server, log, batch).await.map_err(CommitError::from)
    }

    async fn try_commit(
        &self,
        session: &mut Option<PgConnection>,
        server: &Server,
        log: i16,
        batch: &Batch,
    ) -> Result<(), CommitFailure> {
        let kept = session.take();
        let was_kept = kept.is_some();
        let mut connection = match kept {
            Some(connection) => connection,
            None => server.connect(&session::SEQUENCER).await?,
        };
        let begun = timeout(limits::BEGIN, connection.begin()).await;
        let mut transaction = match begun.map_err(|_| too_late("beginning a batch")) {
            Ok(Ok(transaction)) => transaction,
            // The server may have been restarted since the last batch.
            Ok(Err(error)) if was_kept => return Err(CommitFailure::Passing(error)),
            Ok(Err(error)) => return Err(store_error(error).into()),
            Err(error) => return Err(error.into()),
        };
        let appended = timeout(limits::APPEND, append(&mut transaction, log, batch)).await;
        if let Err(failed) = appended.unwrap_or_else(|_| Err(too_late("a batch").into())) {
            let rolled_back = timeout(limits::BEGIN, transaction.rollback()).await;
            if matches!(rolled_back, Ok(Ok(()))) {
                *session = Some(connection);
            }
            return Err(failed);
        }
        match timeout(self.commit_timeout, self.warnings.during(transaction.commit())).await {
            Ok((Ok(()), None)) => {
                *session = Some(connection);
                Ok(())
            }
            Ok((Ok(()), Some(warning))) => {
                Err(unknown(format!("COMMIT was answered with a warning: {warning}")))
            }
            Ok((Err(error), _)) => Err(unknown(error.to_string())),
            Err(_) => Err(unknown("COMMIT was not answered in time".into())),
        }
    }
}

fn unknown(why: String) -> CommitFailure {
    CommitFailure::For(CommitError::Unknown(why))
}

/// Reason why one attempt to commit failed.
enum CommitFailure {
    /// A cause that another attempt may not meet; nothing was changed.
    Passing(sqlx::Error),
    For(CommitError),
}

impl From<CommitFailure> for CommitError {
    fn from(failed: CommitFailure) -> Self {
        match failed {
            CommitFailure::Passing(error) => Self::NotCommitted(store_error(error)),
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

/// Performs all steps of a batch except COMMIT.
async fn append(transaction: &mut PgTransaction<'_>, log: i16, batch: &Batch) -> Result<(), CommitFailure> {
    let head = batch.to.committed();
    let heads = if batch.entries.is_empty() { &[][..] } else { std::slice::from_ref(&head) };
    let rows = Appended { from: &batch.from, batch, heads, signatures: &batch.signatures, filling: None };
    if !rows::append(transaction, log, &rows).await? {
        return Err(other_head(transaction, log, batch).await);
    }
    settle(transaction, log, batch).await?;
    take_effects(transaction, log, batch).await
}

/// Writes the batch's [`Effect`]s, after its entries and its head.
async fn take_effects(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    batch: &Batch,
) -> Result<(), CommitFailure> {
    let at = batch.to.at;
    for effect in &batch.effects {
        match effect {
            Effect::Freeze => end_log(transaction, log, FROZEN_BY, at).await?,
            Effect::Hold { entry, case } => custody::begin_hold(transaction, log, *entry, case, at).await?,
            Effect::Release { entry, case } => {
                custody::end_hold(&mut **transaction, log, *entry, case, at).await?;
            }
        }
    }
    Ok(())
}

/// Returns the reason why the batch does not follow the head in force.
async fn other_head(transaction: &mut PgTransaction<'_>, log: i16, batch: &Batch) -> CommitFailure {
    let head = match grown_head(transaction, log).await {
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
async fn grown_head(transaction: &mut PgTransaction<'_>, log: i16) -> Result<Head, StoreError> {
    let row = head::read_row(&mut **transaction, log).await?;
    row.must_grow()?;
    row.into_head()
}

/// Inserts the outcome of the inbox attempts that this batch ends; digests without a pending attempt are skipped.
async fn settle(transaction: &mut PgTransaction<'_>, log: i16, batch: &Batch) -> Result<(), CommitFailure> {
    if batch.settled.is_empty() {
        return Ok(());
    }
    let digests: Vec<&[u8]> = batch.settled.iter().map(|(digest, _)| digest.as_bytes().as_slice()).collect();
    let indices: Vec<i64> = batch.settled.iter().map(|(_, index)| column(index.get())).collect();
    sqlx::query!(
        "INSERT INTO inbox_outcome (log_id, digest, attempt, idx)
         SELECT inbox.log_id, inbox.digest, inbox.attempt, settled.idx
           FROM UNNEST($2::bytea[], $3::bigint[]) AS settled (digest, idx)
           JOIN inbox ON inbox.log_id = $1 AND inbox.digest = settled.digest
             ON CONFLICT (log_id, digest, attempt) DO NOTHING",
        log,
        &digests as &[&[u8]],
        &indices
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
