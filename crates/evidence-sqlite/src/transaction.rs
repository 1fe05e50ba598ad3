//! [`WriteTransaction`]: an open transaction of the writing connection.

use evidence::{CommitError, StoreError};
use sqlite::{Doubt, Repair, Script, ScriptFailure, SqliteFailure};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::SharedConnections;
use crate::counts::Count;
use crate::sql::{is_constraint, store_error};

/// Numbers of the next rows, and the counts, as of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowNumbers {
    pub(crate) next_stream: i64,
    pub(crate) next_record: i64,
    pub(crate) count: Count,
}

/// Open transaction, with the numbers that the writer will know after its commit.
pub(crate) struct WriteTransaction<'a> {
    /// Statements to execute next; at first BEGIN.
    pub(crate) script: Script,
    pub(crate) count: Count,
    pub(crate) next_stream: i64,
    pub(crate) next_record: i64,
    connection: &'a mut SqliteConnection,
    known: &'a mut Option<RowNumbers>,
    is_left_open: &'a mut bool,
    before: RowNumbers,
    doubt: &'a Doubt,
}

/// Reason why a transaction is not committed, or may not be.
pub(crate) enum CommitFailure {
    /// Some row breaks a constraint, with the cause in words.
    Constraint(String),
    Other(CommitError),
}

impl RowNumbers {
    pub(crate) async fn read(connection: &mut SqliteConnection) -> Result<Self, StoreError> {
        let select =
            "SELECT coalesce((SELECT max(no) FROM stream), 0), coalesce((SELECT max(no) FROM record), 0)";
        let row = sqlx::query(select).fetch_one(&mut *connection).await.map_err(store_error)?;
        let last = |column| row.try_get::<i64, _>(column).map_err(store_error);
        let (next_stream, next_record) = (last(0)? + 1, last(1)? + 1);
        Ok(Self { next_stream, next_record, count: Count::read(connection).await? })
    }
}

impl<'a> WriteTransaction<'a> {
    /// A transaction that begins with the first statements. `before` are the numbers as of the last commit; `known` and
    /// `is_left_open` are the writer's.
    pub(crate) fn new(
        connection: &'a mut SqliteConnection,
        before: RowNumbers,
        known: &'a mut Option<RowNumbers>,
        is_left_open: &'a mut bool,
        doubt: &'a Doubt,
    ) -> Self {
        let mut script = Script::default();
        script.add("BEGIN IMMEDIATE");
        let RowNumbers { next_stream, next_record, count } = before;
        Self { script, count, next_stream, next_record, connection, known, is_left_open, before, doubt }
    }

    /// Executes the statements of the script. Returns the rows that they return, in order.
    pub(crate) async fn run(&mut self) -> Result<Vec<SqliteRow>, StoreError> {
        self.script.run(self.connection).await.map_err(|failure| store_error(failure.error))
    }

    /// Executes the statements of the script, and returns the connection for those that follow.
    pub(crate) async fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.run().await?;
        Ok(self.connection)
    }

    /// Executes the statements of the script and COMMIT, and publishes the new counts. After an error the transaction is
    /// rolled back.
    pub(crate) async fn commit(mut self, shared: &SharedConnections) -> Result<(), CommitFailure> {
        // If the caller is cancelled from here on, the outcome is unknown.
        *self.known = None;
        self.script.add("COMMIT");
        if let Err(failure) = self.script.run(self.connection).await {
            return Err(self.failed(failure).await);
        }
        let Self { count, next_stream, next_record, .. } = self;
        *self.is_left_open = false;
        *self.known = Some(RowNumbers { next_stream, next_record, count });
        shared.counts.publish(count);
        Ok(())
    }

    async fn failed(self, ScriptFailure { error, may_have_ended, .. }: ScriptFailure) -> CommitFailure {
        if may_have_ended {
            if leaves_doubt(&error) {
                self.doubt.require(Repair::Settle);
                return CommitFailure::Other(CommitError::MayHaveHappened(error.to_string()));
            }
            self.doubt.note(&error);
        }
        *self.known = Some(self.before);
        if is_constraint(&error) {
            self.roll_back().await;
            return CommitFailure::Constraint(error.to_string());
        }
        let error = store_error(error);
        self.abandon(&error).await;
        CommitFailure::Other(error.into())
    }

    /// Rolls back after an error, and requires the [`Repair`] that the error calls for.
    pub(crate) async fn abandon(self, why: &StoreError) {
        match why {
            StoreError::Full(_) | StoreError::ReadOnly(_) => self.doubt.require(Repair::Reopen),
            StoreError::Unavailable(_) | StoreError::Damaged(_) => self.doubt.require(Repair::Settle),
            StoreError::InUse(_) | StoreError::Refused(_) => {}
        }
        self.roll_back().await;
    }

    /// Rolls the transaction back.
    pub(crate) async fn roll_back(self) {
        // If SQLite has rolled back already, there is nothing to do; if the rollback fails, the next transaction
        // repeats it.
        if run(self.connection, "ROLLBACK").await.is_ok() {
            *self.is_left_open = false;
        }
    }
}

/// Returns whether COMMIT may have happened despite this error: an I/O error, or one that SQLite did not return, such as
/// that sqlx's thread is gone.
fn leaves_doubt(error: &sqlx::Error) -> bool {
    error.as_database_error().is_none() || Repair::after(SqliteFailure::of(error)) == Repair::Settle
}

/// Executes a statement without parameters.
pub(crate) async fn run(
    connection: &mut SqliteConnection,
    statement: &'static str,
) -> Result<(), StoreError> {
    sqlx::query(statement).execute(connection).await.map(drop).map_err(store_error)
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions;
    use sqlx::sqlite::SqliteConnectOptions;

    use super::*;

    #[tokio::test]
    async fn only_an_error_that_sqlite_returned_excludes_that_the_commit_happened() {
        let mut connection = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
        let returned = sqlx::query("COMMIT").execute(&mut connection).await.unwrap_err();
        assert!(!leaves_doubt(&returned));
        assert!(leaves_doubt(&sqlx::Error::WorkerCrashed));
    }
}
