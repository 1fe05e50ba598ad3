//! The one connection: its transactions, and its recovery after a failed write.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use durable::{DatabaseLocation, FileAccess};
use operation_times::{OperationObserver, StoreOperation, timed};
use sqlite::{BUSY_TIMEOUT, Doubt, Repair, probe, settle};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{ConnectOptions, Connection, Sqlite, SqliteConnection, Transaction};
use tokio::sync::{Mutex, MutexGuard};

use crate::error::{StoreError, WriteError};
use crate::limits::{CHECKPOINT_PAGES, WAL_BYTES};

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/verification-sqlite");

const READ: StoreOperation = StoreOperation { number: 0, name: "read" };
/// The operation that [`OperationObserver`]s are told of after a write.
pub const WRITE: StoreOperation = StoreOperation { number: 1, name: "write" };

/// The database file and its connection.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    place: Arc<DatabaseLocation>,
    doubt: Doubt,
    /// `None` after the end.
    connection: Mutex<Option<SqliteConnection>>,
    observer: Option<Arc<dyn OperationObserver>>,
}

/// Exclusive use of the connection.
struct Session<'d> {
    connection: MutexGuard<'d, Option<SqliteConnection>>,
    doubt: &'d Doubt,
}

impl Database {
    pub(crate) async fn open(path: &Path) -> Result<Self, StoreError> {
        let place = Arc::new(DatabaseLocation::take(path, false, FileAccess::Secret)?);
        sqlite::make_file(path).map_err(StoreError::not_made)?;
        let migrator = SqlitePoolOptions::new().max_connections(1).connect_with(options(path)).await?;
        MIGRATIONS.run(&migrator).await?;
        migrator.close().await;
        let connection = Mutex::new(Some(options(path).connect().await?));
        place.remember(true)?;
        Ok(Self { path: path.to_owned(), place, doubt: Doubt::default(), connection, observer: None })
    }

    /// Reports the duration of each operation from now on.
    pub(crate) fn observed_by(self, observer: Arc<dyn OperationObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Runs `work` on the connection, for reading.
    pub(crate) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        self.observed(READ, async { Ok(work(self.session().await?.reader()?).await?) }).await
    }

    /// Runs `work` in a transaction, and commits it. On an error nothing is changed, unless the commit itself failed.
    pub(crate) async fn write<T, E: Into<WriteError>>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        self.observed(WRITE, async { self.session().await?.write(work).await }).await
    }

    async fn observed<T>(
        &self,
        operation: StoreOperation,
        running: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match &self.observer {
            Some(observer) => timed(&**observer, operation, running).await,
            None => running.await,
        }
    }

    /// Waits for the connection, and replaces it if a write failed.
    async fn session(&self) -> Result<Session<'_>, StoreError> {
        self.place.check()?;
        let mut connection = self.connection.lock().await;
        if connection.is_none() || self.doubt.repair() != Repair::None {
            self.repair(&mut connection).await?;
        }
        Ok(Session { connection, doubt: &self.doubt })
    }

    async fn repair(&self, slot: &mut Option<SqliteConnection>) -> Result<(), StoreError> {
        let mut attempt = self.doubt.attempt();
        if slot.is_none() {
            attempt.repair = Repair::Settle;
        }
        probe(&self.place).await?;
        // Opened before the old one is closed: the last connection to close removes the write-ahead log.
        let connection = options(&self.path).connect().await?;
        if let Some(old) = slot.take() {
            // An error says nothing new: the connection is replaced because of one.
            let _ = old.close().await;
        }
        let connection = slot.insert(connection);
        // The path may lead to another file by now.
        self.place.check()?;
        let repair = attempt.repair;
        if repair == Repair::Settle {
            settle(connection, &self.place, true).await?;
        }
        attempt.succeeded();
        tracing::info!(?repair, "the database is written by a new connection");
        Ok(())
    }

    pub(crate) async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            let _ = connection.close().await;
        }
    }
}

impl Session<'_> {
    fn reader(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.connection.as_mut().ok_or_else(closed)
    }

    async fn write<T, E: Into<WriteError>>(
        &mut self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        let done = in_transaction(connection, work).await;
        done.map_err(|error| match error {
            WriteError::Contradiction(why) => StoreError::Refused(why.to_owned()),
            WriteError::Sqlite(error) => {
                self.doubt.note(&error);
                error.into()
            }
        })
    }
}

async fn in_transaction<T, E: Into<WriteError>>(
    connection: &mut SqliteConnection,
    work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, E>,
) -> Result<T, WriteError> {
    let mut transaction: Transaction<'_, Sqlite> = connection.begin_with("BEGIN IMMEDIATE").await?;
    let done = work(&mut transaction).await.map_err(Into::into)?;
    transaction.commit().await?;
    Ok(done)
}

fn options(path: &Path) -> SqliteConnectOptions {
    sqlite::writing(sqlite::options(path, BUSY_TIMEOUT), WAL_BYTES)
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
}

fn closed() -> StoreError {
    StoreError::Unavailable("the database was closed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(database: &Database, statement: &'static str) -> Result<(), StoreError> {
        let done = database.write(async |connection: &mut SqliteConnection| {
            sqlx::query(statement).execute(connection).await
        });
        done.await.map(drop)
    }

    /// Lets the database grow no more. The limit belongs to a connection, and another one does not have it.
    async fn fill(database: &Database) {
        let limit = database.read(async |connection: &mut SqliteConnection| {
            sqlx::query("PRAGMA max_page_count = 1").execute(connection).await
        });
        limit.await.unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_refuses_a_write_and_the_same_write_succeeds_once_there_is_space() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("some.db")).await.unwrap();
        run(&database, "CREATE TABLE large (content BLOB)").await.unwrap();
        for _ in 0..3 {
            fill(&database).await;
            let full = run(&database, "INSERT INTO large VALUES (zeroblob(200000))").await;
            assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
        }
        run(&database, "INSERT INTO large VALUES (zeroblob(200000))").await.unwrap();
        let count = database.read(async |connection: &mut SqliteConnection| {
            sqlx::query_scalar::<_, i64>("SELECT count(*) FROM large").fetch_one(connection).await
        });
        assert_eq!(count.await.unwrap(), 1);
        database.close().await;
    }
}
