//! [`Doubt`]: whether the writing connection can be used again, and the repair that a new connection does first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use durable::DatabaseLocation;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use crate::SqliteFailure;

/// Repair of the writing connection before the next write, as required by a [`SqliteFailure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// No repair: the connection can be used again.
    None = 0,
    /// Open another connection.
    Reopen = 1,
    /// Open another connection and [`settle`] whether the last write happened.
    Settle = 2,
}

impl Repair {
    /// Returns the repair that a failure requires.
    pub fn after(failure: SqliteFailure) -> Self {
        match failure {
            SqliteFailure::Constraint => Self::None,
            SqliteFailure::Full | SqliteFailure::ReadOnly | SqliteFailure::Other => Self::Reopen,
            SqliteFailure::Io | SqliteFailure::Damaged => Self::Settle,
        }
    }
}

/// Most thorough [`Repair`] that any failed write has required.
#[derive(Debug, Default)]
pub struct Doubt(AtomicU8);

impl Doubt {
    /// Records the error of a failed write.
    pub fn note(&self, error: &sqlx::Error) {
        self.require(Repair::after(SqliteFailure::of(error)));
    }

    /// Requires a repair before the next write.
    pub fn require(&self, repair: Repair) {
        self.0.fetch_max(repair as u8, Ordering::AcqRel);
    }

    /// Returns the repair that is needed now.
    pub fn repair(&self) -> Repair {
        of_number(self.0.load(Ordering::Acquire))
    }

    /// Begins the repair. Until `Attempt::succeeded` it stays required, also if the attempt is dropped.
    pub fn attempt(&self) -> Attempt<'_> {
        let repair = of_number(self.0.swap(Repair::None as u8, Ordering::AcqRel));
        Attempt { doubt: self, repair }
    }
}

/// Repair in progress, begun by [`Doubt::attempt`].
#[derive(Debug)]
pub struct Attempt<'d> {
    doubt: &'d Doubt,
    /// Repair to perform.
    pub repair: Repair,
}

impl Attempt<'_> {
    /// Ends the attempt: all failures recorded before it began are repaired.
    pub fn succeeded(mut self) {
        self.repair = Repair::None;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.doubt.require(self.repair);
    }
}

fn of_number(number: u8) -> Repair {
    match number {
        0 => Repair::None,
        1 => Repair::Reopen,
        _ => Repair::Settle,
    }
}

/// Tests whether the disk accepts writes, before a connection is opened: SQLite opens a file that it cannot open
/// for writing as a read-only one, and does not report the reason.
///
/// # Errors
///
/// The file system's error.
pub async fn probe(place: &Arc<DatabaseLocation>) -> Result<(), sqlx::Error> {
    let place = Arc::clone(place);
    blocking(move || place.probe()).await
}

async fn blocking(work: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> Result<(), sqlx::Error> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(std::io::Error::other).flatten()?)
}

/// Makes the state durable that a new connection shows, and ensures that a crash cannot bring back another one.
///
/// A failed flush leaves two doubts. Pages of the write-ahead log may be clean in memory and not on the disk, so
/// the log is overwritten with its own bytes and flushed. And complete frames of a failed transaction may be at
/// its end, where the recovery after a crash would find them; an additional commit overwrites them.
///
/// # Errors
///
/// If the disk still fails. The connection must then be closed.
pub async fn settle(
    connection: &mut SqliteConnection,
    place: &Arc<DatabaseLocation>,
    wal: bool,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    if wal {
        // SQLite's write lock is held, so no other process writes or restarts the write-ahead log.
        let place = Arc::clone(place);
        blocking(move || place.rewrite_wal()).await?;
    }
    let version: i32 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
    let next = AssertSqlSafe(format!("PRAGMA user_version = {}", version.wrapping_add(1)));
    sqlx::query(next).execute(&mut *transaction).await?;
    transaction.commit().await
}

#[cfg(test)]
mod tests {
    use durable::FileAccess;
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
    use sqlx::{ConnectOptions, Row};

    use super::*;

    #[test]
    fn the_most_thorough_repair_counts_and_a_failed_attempt_repairs_nothing() {
        let doubt = Doubt::default();
        assert_eq!(doubt.repair(), Repair::None);
        doubt.require(Repair::Settle);
        doubt.require(Repair::Reopen);
        drop(doubt.attempt());
        assert_eq!(doubt.repair(), Repair::Settle);
        let attempt = doubt.attempt();
        doubt.require(Repair::Reopen); // meanwhile another write failed
        attempt.succeeded();
        assert_eq!(doubt.repair(), Repair::Reopen);
        doubt.attempt().succeeded();
        assert_eq!(doubt.repair(), Repair::None);
    }

    #[tokio::test]
    async fn settling_keeps_every_row_and_the_write_ahead_log_as_long_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let place = Arc::new(DatabaseLocation::take(&path, false, FileAccess::Public).unwrap());
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut connection = options.journal_mode(SqliteJournalMode::Wal).connect().await.unwrap();
        sqlx::query("CREATE TABLE t (n INTEGER, filling BLOB)").execute(&mut connection).await.unwrap();
        for _ in 0..50 {
            let insert = sqlx::query("INSERT INTO t VALUES (1, randomblob(3000))");
            insert.execute(&mut connection).await.unwrap();
        }
        place.remember(true).unwrap();
        let before = place.wal_bytes();
        settle(&mut connection, &place, true).await.unwrap();
        assert!(place.wal_bytes() >= before);
        let row = sqlx::query("SELECT count(*), (SELECT integrity_check FROM pragma_integrity_check) FROM t");
        let row = row.fetch_one(&mut connection).await.unwrap();
        assert_eq!((row.get::<i64, _>(0), row.get::<String, _>(1)), (50, "ok".to_owned()));
    }
}
