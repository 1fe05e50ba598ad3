//! [`EvidenceStore`] on SQLite: one file, one writing process.
//!
//! * WAL with `synchronous=FULL`: a commit is one fsync, and once acknowledged it survives power loss. Deliveries
//!   are written without one, as a record that is delivered again does no harm.
//! * One connection writes, under `BEGIN IMMEDIATE`; others read. A commit of few changes is two requests to the
//!   connection's thread: all rows, and COMMIT. Every statement is prepared once for each power of two of rows, so a
//!   commit of 200 changes is a few dozen statements.
//! * The write-ahead log is copied into the file by a connection of its own, in parallel with the commits.
//! * A lock file next to the database admits one writing process ([`durable::DatabaseLocation`]). Only the owner may
//!   read the database, since it holds plaintext (V-40).
//! * After a failed write, the writing connection is closed, and the next write opens another one; reads continue
//!   meanwhile. If the file was moved, replaced or truncated, nothing more is written until the process starts again.
//!
//! The outbox is counted in memory, once when the database is opened and then with each commit. Leases are in
//! memory, too: the holder of the lock file is the only process, and the leases of all earlier ones are over.
//!
//! Not here: the differences of PostgreSQL (`evidence-postgres`).

mod checkpoint;
mod connect;
mod counts;
mod leases;
pub mod limits;
mod outbox;
mod prune;
mod read_only;
mod reader;
mod rows;
mod sql;
mod stream_editor;
#[cfg(test)]
mod tests;
mod transaction;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use durable::{DatabaseLocation, FileAccess};
use evidence::{
    Backlog, Change, Claim, CommitError, Delivered, EvidenceStore, Group, Horizon, Instances, OpenDecision,
    Outbox, PendingRecord, Pruned, RefusedRecord, StoreError, StoredRecord, StoredStream, StreamSummary,
    StuckRecord, Upkeep,
};
use merkle::EntryDigest;
use sqlite::Doubt;
use sqlx::sqlite::SqlitePool;
use tokio::sync::Mutex;

use crate::checkpoint::Checkpointer;
use crate::counts::Counts;
use crate::leases::Leases;
pub use crate::read_only::SqliteReader;
pub use crate::stream_editor::SqliteStreamEditor;
use crate::writer::{DatabaseFile, EvidenceWriter};

/// Location and use of a database.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Path of the database file. The file is created if needed, its folder is not.
    pub path: PathBuf,
    /// Name of the instance; no earlier run has had it.
    pub instance: String,
    /// Number of connections that read; by default [`limits::READERS`].
    pub readers: u32,
}

impl Settings {
    /// Default settings for a file.
    pub fn new(path: impl Into<PathBuf>, instance: impl Into<String>) -> Self {
        Self { path: path.into(), instance: instance.into(), readers: limits::READERS }
    }
}

/// [`EvidenceStore`] in a SQLite file. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Sqlite {
    instance: Arc<str>,
    shared: Arc<SharedConnections>,
}

#[derive(Debug)]
struct SharedConnections {
    location: Arc<DatabaseLocation>,
    writer: Mutex<EvidenceWriter>,
    read: SqlitePool,
    checkpointer: Checkpointer,
    counts: Arc<Counts>,
    leases: Leases,
    /// Repair that the writing connection needs before the next write.
    doubt: Arc<Doubt>,
    /// Set once the file was moved, replaced or truncated, or the database was closed: no more is written.
    ended: AtomicBool,
}

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/evidence-sqlite");

impl Sqlite {
    /// Opens a database, creates it if there is none, and migrates its tables.
    ///
    /// Blocks the thread for a moment, as files are opened.
    ///
    /// # Errors
    ///
    /// If another process has the database, if the file system is unreliable for it, if a newer version of this
    /// program has changed its tables, and if the instance's name was used before.
    pub async fn open(settings: Settings) -> Result<Self, StoreError> {
        let Settings { path, instance, readers } = settings;
        evidence::check_instance_name(&instance)?;
        let location =
            Arc::new(DatabaseLocation::take(&path, false, FileAccess::Secret).map_err(sql::location_error)?);
        sqlite::make_file(&path).map_err(sql::creation_error)?;
        let migrator = connect::migrator(&path).await?;
        MIGRATIONS.run(&migrator).await.map_err(sql::migration)?;
        migrator.close().await;
        let mut connection = connect::writer(&path).await?;
        leases::refuse_used_name(&mut connection, &instance).await?;
        // Readers are opened last: a reader of an empty file cannot tell that it is in WAL mode.
        let read = connect::readers(&path, readers).await?;
        let counts = Arc::new(Counts::default());
        let doubt = Arc::new(Doubt::default());
        let checkpoints = connect::checkpointer(&path).await?;
        let checkpointer =
            Checkpointer::new(checkpoints, path.clone(), Arc::clone(&location), Arc::clone(&doubt));
        let database = DatabaseFile { path, location: Arc::clone(&location), doubt: Arc::clone(&doubt) };
        let writer = EvidenceWriter::new(connection, database, Arc::clone(&counts)).await?;
        location.remember(true).map_err(sql::location_error)?;
        let writer = Mutex::new(writer);
        let leases = Leases::default();
        leases.renew(&instance, evidence::limits::LEASE);
        let shared = SharedConnections {
            location,
            writer,
            read,
            checkpointer,
            counts,
            leases,
            doubt,
            ended: false.into(),
        };
        Ok(Self { instance: instance.into(), shared: Arc::new(shared) })
    }

    /// Opens a handle for another instance in this process, over the same connections.
    pub fn another(&self, instance: &str) -> Self {
        self.shared.leases.renew(instance, evidence::limits::LEASE);
        Self { instance: instance.into(), shared: Arc::clone(&self.shared) }
    }

    /// Waits for running statements and closes the files. Dropping does the same without waiting.
    pub async fn close(&self) {
        self.shared.read.close().await;
        self.shared.ended.store(true, Ordering::Release);
        self.shared.checkpointer.close().await;
        self.shared.writer.lock().await.close().await;
    }
}

impl SharedConnections {
    /// Refuses a write once [`SharedConnections::ended`] is set, or if a file was replaced.
    fn check(&self) -> Result<(), StoreError> {
        if self.ended.load(Ordering::Acquire) {
            let text =
                "the database was closed, or its file moved, replaced or truncated: start the process again";
            return Err(StoreError::Refused(text.into()));
        }
        self.location.check().map_err(|error| {
            let error = sql::location_error(error);
            if matches!(error, StoreError::Refused(_)) {
                self.ended.store(true, Ordering::Release);
            }
            error
        })
    }
}

#[async_trait]
impl EvidenceStore for Sqlite {
    fn instance(&self) -> &str {
        &self.instance
    }

    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        reader::streams(&self.shared.read, names).await
    }

    async fn claimed(&self, claims: &[Claim]) -> Result<Vec<bool>, StoreError> {
        reader::claimed(&self.shared.read, claims).await
    }

    async fn commit(&self, changes: &[Change]) -> Result<(), CommitError> {
        let group = Group::of(changes)?;
        if !group.moves.is_empty() {
            writer::commit(&self.shared, &self.instance, &group).await?;
        }
        Ok(())
    }

    async fn happened(&self, changes: &[Change]) -> Result<bool, StoreError> {
        let group = Group::of(changes)?;
        writer::happened(&self.shared, &group).await
    }

    async fn record(&self, id: &EntryDigest) -> Result<Option<StoredRecord>, StoreError> {
        reader::record(&self.shared.read, id).await
    }

    async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<StoredRecord>, StoreError> {
        reader::records(&self.shared.read, stream, from, limit).await
    }

    async fn due(&self, at: u64, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        reader::due(&self.shared.read, at, limit).await
    }

    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        reader::list(&self.shared.read, after, limit).await
    }
}

#[async_trait]
impl Outbox for Sqlite {
    async fn pending(&self, limit: usize) -> Result<Vec<PendingRecord>, StoreError> {
        outbox::pending(&self.shared, &self.instance, limit).await
    }

    async fn delivered(&self, deliveries: &[Delivered]) -> Result<(), StoreError> {
        outbox::delivered(&self.shared, deliveries).await
    }

    async fn stuck(&self, refused: &[RefusedRecord]) -> Result<(), StoreError> {
        outbox::stick(&self.shared, refused).await
    }

    async fn stuck_records(&self, limit: usize) -> Result<Vec<StuckRecord>, StoreError> {
        outbox::stuck_records(&self.shared.read, limit).await
    }

    async fn unstick(&self) -> Result<u64, StoreError> {
        outbox::unstick(&self.shared).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        outbox::backlog(&self.shared).await
    }
}

#[async_trait]
impl Instances for Sqlite {
    async fn orphans(&self, limit: usize) -> Result<Vec<OpenDecision>, StoreError> {
        reader::orphans(&self.shared, limit).await
    }

    async fn renew(&self, lasts: Duration) -> Result<Option<Duration>, StoreError> {
        self.shared.leases.renew(&self.instance, lasts);
        Ok(None)
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.shared.leases.end(&self.instance);
        Ok(())
    }
}

#[async_trait]
impl Upkeep for Sqlite {
    async fn prune(&self, horizon: Horizon, limit: usize) -> Result<Pruned, StoreError> {
        prune::prune(&self.shared, horizon, limit).await
    }

    async fn check_durability(&self) -> Result<(), StoreError> {
        self.shared.check()?;
        writer::check_durability(&self.shared).await
    }
}
