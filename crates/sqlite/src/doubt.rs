//! Whether the writing connection can be used again, and what a new one does first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use durable::Place;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use crate::Failure;

/// What the writing connection needs before the next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Nothing.
    None = 0,
    /// Another connection.
    Reopen = 1,
    /// Another connection that [settles](settle) what may have happened.
    Settle = 2,
}

impl Repair {
    /// The repair that a failure calls for.
    pub fn after(failure: Failure) -> Self {
        match failure {
            Failure::Constraint => Self::None,
            Failure::Full | Failure::ReadOnly | Failure::Other => Self::Reopen,
            Failure::Io | Failure::Damaged => Self::Settle,
        }
    }
}

/// The most thorough repair that any failed write called for.
#[derive(Debug, Default)]
pub struct Doubt(AtomicU8);

impl Doubt {
    /// Notes a failed write.
    pub fn note(&self, error: &sqlx::Error) {
        self.require(Repair::after(Failure::of(error)));
    }

    /// Requires a repair before the next write.
    pub fn require(&self, repair: Repair) {
        self.0.fetch_max(repair as u8, Ordering::AcqRel);
    }

    /// The repair that is needed now.
    pub fn repair(&self) -> Repair {
        of_number(self.0.load(Ordering::Acquire))
    }

    /// Begins the repair. Until `Attempt::succeeded` it stays required, also when the attempt is dropped.
    pub fn attempt(&self) -> Attempt<'_> {
        let repair = of_number(self.0.swap(Repair::None as u8, Ordering::AcqRel));
        Attempt { doubt: self, repair }
    }
}

/// A repair under way.
#[derive(Debug)]
pub struct Attempt<'d> {
    doubt: &'d Doubt,
    /// What is to be done.
    pub repair: Repair,
}

impl Attempt<'_> {
    /// Ends the attempt: what was noted before it began is repaired.
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

/// Asks the disk whether it takes writes, before a connection is opened: SQLite opens a file that it cannot open to write
/// as a read-only one, and does not say why.
///
/// # Errors
/// What the file system said.
pub async fn probe(place: &Arc<Place>) -> Result<(), sqlx::Error> {
    let place = Arc::clone(place);
    blocking(move || place.probe()).await
}

async fn blocking(work: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> Result<(), sqlx::Error> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(std::io::Error::other).flatten()?)
}

/// Makes durable what a new connection shows, and rules out that anything else comes back after a crash.
///
/// A flush that failed leaves two doubts. Pages of the write-ahead log may be clean in memory and not on the disk, so
/// the log is written over with its own bytes and flushed. And the frames of a transaction that failed may stand at its
/// end, complete, where the recovery after a crash would find them; a commit of our own overwrites them.
///
/// # Errors
/// When the disk still fails. The connection must then be closed.
pub async fn settle(
    connection: &mut SqliteConnection,
    place: &Arc<Place>,
    wal: bool,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    if wal {
        // Under SQLite's write lock: nobody else writes the write-ahead log or starts it anew.
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
    use durable::Access;
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
        let place = Arc::new(Place::take(&path, false, Access::Public).unwrap());
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
