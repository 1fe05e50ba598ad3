//! The one transaction in which everything moves.

use std::sync::Arc;

use evidence::{CommitError, Group, StoreError};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use crate::counts::{Count, Counts};
use crate::rows::{Stopped, why_not, write};
use crate::sql::{self, not_committed, signed, store_error};
use crate::{Shared, checkpoint};

/// The connection that writes, and what it knows without asking.
///
/// Transactions are begun and ended by hand: after some errors (a full disk) SQLite has undone one already, and a caller
/// may go away in the middle. So whoever begins one first ends what was left.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Option<SqliteConnection>,
    counts: Arc<Counts>,
    /// `None` while it is not sure: a caller went away in the middle.
    known: Option<Known>,
    /// Whether there may be a transaction that nobody will end.
    is_left: bool,
    /// Whether a commit would be fsynced. Set to false before it may be.
    is_full: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    next_stream: i64,
    next_record: i64,
    count: Count,
}

/// A transaction, and what will be known once it is committed.
pub(crate) struct Writing<'a> {
    pub(crate) connection: &'a mut SqliteConnection,
    pub(crate) count: Count,
    pub(crate) next_stream: i64,
    pub(crate) next_record: i64,
    known: &'a mut Option<Known>,
    is_left: &'a mut bool,
    before: Known,
}

impl Writer {
    pub(crate) async fn new(
        mut connection: SqliteConnection,
        counts: Arc<Counts>,
    ) -> Result<Self, StoreError> {
        let known = Known::read(&mut connection).await?;
        counts.show(known.count);
        Ok(Self { connection: Some(connection), counts, known: Some(known), is_left: false, is_full: true })
    }

    pub(crate) async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = connection.close().await;
        }
    }

    pub(crate) fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.connection.as_mut().ok_or_else(closed)
    }

    /// Begins a transaction whose commit survives power loss.
    pub(crate) async fn begin(&mut self) -> Result<Writing<'_>, StoreError> {
        self.end_what_was_left().await?;
        if !self.is_full {
            run(self.connection()?, "PRAGMA synchronous = FULL").await?;
            self.is_full = true;
        }
        self.begin_as_it_is().await
    }

    /// Begins a transaction whose commit is not fsynced, only not half there.
    pub(crate) async fn begin_lightly(&mut self) -> Result<Writing<'_>, StoreError> {
        self.end_what_was_left().await?;
        self.is_full = false;
        run(self.connection()?, "PRAGMA synchronous = NORMAL").await?;
        self.begin_as_it_is().await
    }

    async fn end_what_was_left(&mut self) -> Result<(), StoreError> {
        if self.is_left {
            // If it has ended already, there is none to undo.
            let _ = run(self.connection()?, "ROLLBACK").await;
            self.is_left = false;
        }
        Ok(())
    }

    async fn begin_as_it_is(&mut self) -> Result<Writing<'_>, StoreError> {
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        let before = match self.known {
            Some(known) => known,
            None => Known::read(connection).await?,
        };
        self.counts.show(before.count);
        self.known = Some(before);
        self.is_left = true;
        run(connection, "BEGIN IMMEDIATE").await?;
        let Known { next_stream, next_record, count } = before;
        let (known, is_left) = (&mut self.known, &mut self.is_left);
        Ok(Writing { connection, count, next_stream, next_record, known, is_left, before })
    }
}

fn closed() -> StoreError {
    StoreError::Refused("the database was closed".into())
}

async fn run(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), StoreError> {
    sqlx::query(statement).execute(connection).await.map(drop).map_err(store_error)
}

impl Known {
    async fn read(connection: &mut SqliteConnection) -> Result<Self, StoreError> {
        let select =
            "SELECT coalesce((SELECT max(no) FROM stream), 0), coalesce((SELECT max(no) FROM record), 0)";
        let row = sqlx::query(select).fetch_one(&mut *connection).await.map_err(store_error)?;
        let last = |column| row.try_get::<i64, _>(column).map_err(store_error);
        let (next_stream, next_record) = (last(0)? + 1, last(1)? + 1);
        Ok(Self { next_stream, next_record, count: Count::read(connection).await? })
    }
}

impl Writing<'_> {
    /// Commits.
    pub(crate) async fn commit(self, shared: &Shared) -> Result<(), CommitError> {
        let Self { connection, count, next_stream, next_record, known, is_left, before } = self;
        // Whoever goes away now leaves it open whether this happened.
        *known = None;
        if let Err(error) = sqlx::query("COMMIT").execute(connection).await {
            shared.health.poison_if_in_doubt(&error);
            if sql::leaves_doubt(&error) {
                return Err(CommitError::MayHaveHappened(error.to_string()));
            }
            *known = Some(before);
            return Err(not_committed(error));
        }
        *is_left = false;
        *known = Some(Known { next_stream, next_record, count });
        shared.counts.show(count);
        Ok(())
    }

    /// Undoes what was done so far.
    pub(crate) async fn roll_back(self) {
        // If SQLite has done so already, there is nothing to undo; and if it fails, whoever comes next tries again.
        if run(self.connection, "ROLLBACK").await.is_ok() {
            *self.is_left = false;
        }
    }
}

pub(crate) async fn commit(shared: &Shared, instance: &str, group: &Group<'_>) -> Result<(), CommitError> {
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    let mut writing = writer.begin().await?;
    match write(&mut writing, instance, group).await {
        Ok(()) => writing.commit(shared).await?,
        Err(stopped) => {
            writing.roll_back().await;
            return Err(match stopped {
                Stopped::For(error) => error,
                Stopped::Mismatch => why_not(writer.connection()?, group).await?,
            });
        }
    }
    if shared.checkpointer.must_wait() {
        checkpoint::copy(writer.connection()?, &shared.health).await;
    }
    drop(writer);
    shared.checkpointer.start_if_due();
    Ok(())
}

/// Only asked after an I/O error, after which this process does not write any more; and whoever asks gets the truth or
/// nothing.
pub(crate) async fn happened(shared: &Shared, group: &Group<'_>) -> Result<bool, StoreError> {
    shared.check()?;
    let mut writer = shared.writer.lock().await;
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

pub(crate) async fn check_durability(shared: &Shared) -> Result<(), StoreError> {
    let mut writer = shared.writer.lock().await;
    writer.begin().await?.roll_back().await;
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
