//! [`WriteTransaction`]: an open transaction of the writing connection.

use evidence::{CommitError, StoreError};
use sqlite::{Doubt, Repair, SqliteFailure};
use sqlx::{Row, SqliteConnection};

use crate::SharedConnections;
use crate::counts::Count;
use crate::sql::{not_committed, store_error};

/// Numbers of the next rows, and the counts, as of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowNumbers {
    pub(crate) next_stream: i64,
    pub(crate) next_record: i64,
    pub(crate) count: Count,
}

/// Open transaction, with the numbers that the writer will know after its commit.
pub(crate) struct WriteTransaction<'a> {
    pub(crate) connection: &'a mut SqliteConnection,
    pub(crate) count: Count,
    pub(crate) next_stream: i64,
    pub(crate) next_record: i64,
    pub(crate) known: &'a mut Option<RowNumbers>,
    pub(crate) is_left: &'a mut bool,
    pub(crate) before: RowNumbers,
    pub(crate) doubt: &'a Doubt,
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

impl WriteTransaction<'_> {
    /// Commits the transaction, and publishes the new counts.
    pub(crate) async fn commit(self, shared: &SharedConnections) -> Result<(), CommitError> {
        let Self { connection, count, next_stream, next_record, known, is_left, before, doubt } = self;
        // If the caller is cancelled from here on, the outcome is unknown.
        *known = None;
        if let Err(error) = sqlx::query("COMMIT").execute(connection).await {
            doubt.note(&error);
            if Repair::after(SqliteFailure::of(&error)) == Repair::Settle {
                return Err(CommitError::MayHaveHappened(error.to_string()));
            }
            *known = Some(before);
            return Err(not_committed(error));
        }
        *is_left = false;
        *known = Some(RowNumbers { next_stream, next_record, count });
        shared.counts.show(count);
        Ok(())
    }

    /// Rolls back after an error, and requires the [`Repair`] that the error calls for.
    pub(crate) async fn abandon(self, why: &StoreError) {
        match why {
            StoreError::Full(_) => self.doubt.require(Repair::Reopen),
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
            *self.is_left = false;
        }
    }
}

/// Executes a statement without parameters.
pub(crate) async fn run(
    connection: &mut SqliteConnection,
    statement: &'static str,
) -> Result<(), StoreError> {
    sqlx::query(statement).execute(connection).await.map(drop).map_err(store_error)
}
