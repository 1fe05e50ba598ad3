//! [`EvidenceWriter`]: the connection that commits, and its transactions.

use std::path::PathBuf;
use std::sync::Arc;

use durable::DatabaseLocation;
use evidence::{CommitError, Group, StoreError};
use sqlite::{Doubt, Repair, probe, settle};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use crate::counts::{Count, Counts};
use crate::rows::{find_conflicts, write};
use crate::sql::{self, signed, store_error};
use crate::transaction::{CommitFailure, RowNumbers, WriteTransaction, run};
use crate::{SharedConnections, checkpoint, connect};

/// Connection that writes, and the numbers that it knows without a query.
///
/// Transactions are begun and ended explicitly: after some errors (a full disk) SQLite has rolled back already,
/// and a caller may be cancelled at any point. So each new transaction first ends the one that was left open.
/// After an error other than a broken constraint, the next transaction begins on another connection.
#[derive(Debug)]
pub(crate) struct EvidenceWriter {
    /// `None` while no connection could be opened.
    connection: Option<SqliteConnection>,
    database: DatabaseFile,
    is_closed: bool,
    counts: Arc<Counts>,
    /// Numbers after the last commit; `None` while they are uncertain, as a caller was cancelled during a commit.
    known: Option<RowNumbers>,
    /// `true` while there may be an open transaction of a cancelled caller.
    is_left_open: bool,
    /// `true` if a commit is certain to be fsynced; set to `false` before that setting is changed.
    is_full: bool,
}

/// Data that is needed to open another connection.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    pub(crate) path: PathBuf,
    pub(crate) location: Arc<DatabaseLocation>,
    pub(crate) doubt: Arc<Doubt>,
}

impl EvidenceWriter {
    pub(crate) async fn new(
        mut connection: SqliteConnection,
        database: DatabaseFile,
        counts: Arc<Counts>,
    ) -> Result<Self, StoreError> {
        let known = Some(RowNumbers::read(&mut connection).await?);
        let connection = Some(connection);
        let (is_closed, is_left_open, is_full) = (false, false, true);
        counts.publish(known.map_or(Count::default(), |known| known.count));
        Ok(Self { connection, database, is_closed, counts, known, is_left_open, is_full })
    }

    /// Copies the write-ahead log into the database file, and closes the connection.
    pub(crate) async fn close(&mut self) {
        if let Err(error) = self.repair().await {
            tracing::warn!(%error, "the database is closed after a write that failed");
        }
        self.is_closed = true;
        if let Some(connection) = self.connection.take() {
            let _ = connection.close().await;
        }
    }

    pub(crate) fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.connection.as_mut().ok_or_else(closed)
    }

    /// Replaces the connection if a write failed.
    async fn repair(&mut self) -> Result<(), StoreError> {
        if self.is_closed {
            return Err(closed());
        }
        if self.database.doubt.repair() == Repair::None && self.connection.is_some() {
            return Ok(());
        }
        let attempt = self.database.doubt.attempt();
        // Without a connection the state that the last one left is unknown.
        let repair = if self.connection.is_some() { attempt.repair } else { Repair::Settle };
        probe(&self.database.location).await.map_err(store_error)?;
        if let Some(connection) = self.connection.take() {
            let _ = connection.close().await;
        }
        (self.is_left_open, self.is_full) = (false, true);
        if repair == Repair::Settle {
            self.known = None;
        }
        let mut connection = connect::writer(&self.database.path).await?;
        // The path may lead to another file by now.
        self.database.location.check().map_err(sql::location_error)?;
        if repair == Repair::Settle {
            settle(&mut connection, &self.database.location, true).await.map_err(store_error)?;
        }
        self.connection = Some(connection);
        attempt.succeeded();
        tracing::info!(?repair, "the evidence is written by a new connection");
        Ok(())
    }

    /// Begins a transaction whose commit survives power loss. Its first statement takes BEGIN along.
    pub(crate) async fn begin(&mut self) -> Result<WriteTransaction<'_>, StoreError> {
        self.repair().await?;
        self.end_transaction_left_open().await?;
        if !self.is_full {
            self.run("PRAGMA synchronous = FULL").await?;
            self.is_full = true;
        }
        self.begin_transaction().await
    }

    /// Begins a transaction whose commit is atomic but not fsynced.
    pub(crate) async fn begin_without_fsync(&mut self) -> Result<WriteTransaction<'_>, StoreError> {
        self.repair().await?;
        self.end_transaction_left_open().await?;
        self.is_full = false;
        self.run("PRAGMA synchronous = NORMAL").await?;
        self.begin_transaction().await
    }

    async fn end_transaction_left_open(&mut self) -> Result<(), StoreError> {
        if self.is_left_open {
            // If the transaction has ended already, there is none to roll back.
            let _ = run(self.connection()?, "ROLLBACK").await;
            self.is_left_open = false;
        }
        Ok(())
    }

    async fn run(&mut self, statement: &'static str) -> Result<(), StoreError> {
        let ran = sqlx::query(statement).execute(self.connection()?).await;
        ran.map(drop).map_err(|error| {
            self.database.doubt.note(&error);
            store_error(error)
        })
    }

    async fn begin_transaction(&mut self) -> Result<WriteTransaction<'_>, StoreError> {
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        let before = match self.known {
            Some(known) => known,
            None => RowNumbers::read(connection).await?,
        };
        self.counts.publish(before.count);
        self.known = Some(before);
        self.is_left_open = true;
        Ok(WriteTransaction::new(
            connection,
            before,
            &mut self.known,
            &mut self.is_left_open,
            &self.database.doubt,
        ))
    }

    /// Begins a transaction and rolls it back: the connection is repaired and can write.
    async fn begin_and_roll_back(&mut self) -> Result<(), StoreError> {
        let mut writing = self.begin().await?;
        let begun = writing.connection().await.map(drop);
        match &begun {
            Ok(()) => writing.roll_back().await,
            Err(error) => writing.abandon(error).await,
        }
        begun
    }
}

fn closed() -> StoreError {
    StoreError::Refused("the database was closed".into())
}

pub(crate) async fn commit(
    shared: &SharedConnections,
    instance: &str,
    group: &Group<'_>,
) -> Result<(), CommitError> {
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    let mut writing = writer.begin().await?;
    write(&mut writing, instance, group);
    match writing.commit(shared).await {
        Ok(()) => {}
        Err(CommitFailure::Other(error)) => return Err(error),
        Err(CommitFailure::Constraint(cause)) => {
            return Err(find_conflicts(writer.connection()?, group, &cause).await?);
        }
    }
    if shared.checkpointer.must_wait() {
        checkpoint::copy(writer.connection()?, &shared.doubt).await;
    }
    drop(writer);
    shared.checkpointer.start_if_due();
    Ok(())
}

/// Returns whether a commit in doubt happened. After an I/O error this runs on a connection that has settled the
/// last write.
pub(crate) async fn happened(shared: &SharedConnections, group: &Group<'_>) -> Result<bool, StoreError> {
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    writer.begin_and_roll_back().await?;
    let connection = writer.connection()?;
    if let Some(record) = group.records.first() {
        let select = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM record WHERE id = ?)");
        return select.bind(&record.id.as_bytes()[..]).fetch_one(connection).await.map_err(store_error);
    }
    for moved in &group.moves {
        let select = sqlx::query_scalar::<_, i64>("SELECT version FROM stream WHERE name = ?");
        let found = select.bind(moved.stream).fetch_optional(&mut *connection).await.map_err(store_error)?;
        if found != Some(signed(moved.to)) {
            return Ok(false);
        }
    }
    Ok(!group.moves.is_empty())
}

pub(crate) async fn check_durability(shared: &SharedConnections) -> Result<(), StoreError> {
    let mut writer = shared.writer.lock().await;
    writer.begin_and_roll_back().await?;
    let connection = writer.connection()?;
    for (pragma, needed) in [
        ("journal_mode", "wal"),
        ("synchronous", "2"),
        ("secure_delete", "1"),
        ("foreign_keys", "1"),
        ("recursive_triggers", "1"),
    ] {
        let query = sqlx::query(AssertSqlSafe(format!("PRAGMA {pragma}")));
        let row = query.fetch_one(&mut *connection).await.map_err(store_error)?;
        let number = row.try_get_unchecked::<i64, _>(0).map(|number| number.to_string());
        let found = row.try_get::<String, _>(0).or(number).map_err(store_error)?;
        if found != needed {
            let text = format!("SQLite answers {found} to PRAGMA {pragma}, and evidence needs {needed}");
            return Err(StoreError::Refused(text));
        }
    }
    Ok(())
}
