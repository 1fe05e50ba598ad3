//! Transactions of the writing connection.

use sqlite::Script;
use sqlx::sqlite::SqliteRow;
use sqlx::{SqliteConnection, Transaction};
use store::StoreError;

use crate::{Sqlite, sql};

/// Statement that begins a transaction which writes.
pub(crate) const IMMEDIATE: &str = "BEGIN IMMEDIATE";

/// A script for [`WritePool::commit`](crate::connection::WritePool::commit), with the statement that begins its transaction.
pub(crate) fn script() -> Script {
    let mut script = Script::default();
    script.add(IMMEDIATE);
    script
}

/// Executes a script in an open transaction. Returns the rows that its statements return.
pub(crate) async fn run(
    mut script: Script,
    connection: &mut SqliteConnection,
) -> Result<Vec<SqliteRow>, StoreError> {
    script.run(connection).await.map_err(|failure| sql::store_error(failure.error))
}

/// Commits a transaction other than a [`store::Batch`].
pub(crate) async fn finish(
    store: &Sqlite,
    transaction: Transaction<'_, sqlx::Sqlite>,
) -> Result<(), StoreError> {
    transaction.commit().await.map_err(|error| {
        store.write.note_failure(&error);
        sql::store_error(error)
    })
}
