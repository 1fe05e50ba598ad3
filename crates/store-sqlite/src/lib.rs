//! [`LogStore`](store::LogStore) on SQLite: one file, one log, one writing process.
//!
//! * WAL with `synchronous=FULL`: an acknowledged commit survives power loss. Checkpoints are run by this crate
//!   and not by SQLite, which would not report one that failed.
//! * One connection writes, under `BEGIN IMMEDIATE`; others read.
//! * A lock file next to the database admits one writing process ([`DatabaseLocation`]). SQLite's own locks do not
//!   suffice:
//!   they drop when any descriptor of the database file closes, so only SQLite opens that file here.
//! * After a failed write, the writing connection is closed, and the next write opens another one (`connection`);
//!   reads continue meanwhile. Only if the file was moved, replaced or truncated, no more is written until the
//!   process starts again.
//!
//! Not here: order, signatures and the pin that notices an old backup (`sequencer`).

mod connection;
mod cosignature;
mod custody;
mod heads;
mod inbox;
mod journal;
mod keys;
mod log_state;
mod lookup;
mod moving;
mod place;
mod promises;
mod reader;
mod rows;
mod sql;
#[cfg(test)]
mod tests;
mod tiles;
mod transaction;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use durable::{DatabaseLocation, FileAccess};
use merkle::{EntryDigest, LeafIndex, TreeSize};
use sqlite::BUSY_TIMEOUT;
use sqlite::Repair;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use store::quota::Counters;
use store::{
    Arrival, Batch, Collateral, CommitError, CommittedHead, Enqueued, Entry, Found, GuardKey, Head,
    HeadSignature, Inbox, InboxItem, InboxUse, Lease, Lifecycle, LogKey, LogKeys, LogReader, LogWriter,
    PendingKey, Progress, SequencerStore, ServerChecks, SignatureKind, SignatureStore, SignedHead, State,
    StoreError, TileAddress, TileStore,
};

use connection::WritePool;
pub use durable::{FileSystem, LOCK_SUFFIX};
use place::LeaseFlag;

/// Default number of connections that read.
pub const READERS: u32 = 4;
/// Size in bytes above which the write-ahead log is copied into the database file.
pub const CHECKPOINT_BYTES: u64 = 16 << 20;

/// Location and use of a database.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Path of the database file. The file is created if needed, its folder is not.
    pub path: PathBuf,
    /// Accepts any file system, also one on which SQLite's shared memory is unreliable. The database then has a
    /// rollback journal and one connection that holds an exclusive lock.
    pub allow_filesystem: bool,
    /// Number of connections that read; by default [`READERS`].
    pub readers: u32,
    /// Maximum wait for a lock or a free connection; by default [`BUSY_TIMEOUT`].
    pub busy_timeout: Duration,
}

impl Settings {
    /// Default settings for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), allow_filesystem: false, readers: READERS, busy_timeout: BUSY_TIMEOUT }
    }
}

/// [`LogStore`](store::LogStore) in a SQLite file. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Sqlite {
    write: Arc<WritePool>,
    read: SqlitePool,
    /// `true` in a store [for sequencing](Lifecycle::for_sequencing).
    sequences: bool,
    shared: Arc<SharedFile>,
}

#[derive(Debug)]
struct SharedFile {
    settings: Settings,
    /// Lock file; `None` if opened read-only.
    place: Option<Arc<DatabaseLocation>>,
    wal: bool,
    lease: Arc<LeaseFlag>,
    /// Counters in memory, as only one process uses the database.
    quotas: Counters,
    /// Set once the file was moved, replaced or truncated: this process must not write any more.
    lost: AtomicBool,
}

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/sqlite");

impl Sqlite {
    /// Opens a database for writing, creates it if there is none, and migrates its tables.
    ///
    /// Refused if another process has it ([`StoreError::InUse`]), if the file system is unreliable for it, and if
    /// a newer version of this program has changed its tables.
    pub async fn open(settings: Settings) -> Result<Self, StoreError> {
        let place = DatabaseLocation::take(&settings.path, settings.allow_filesystem, FileAccess::Public)
            .map_err(place::store_error)?;
        sqlite::make_file(&settings.path).map_err(|error| sql::store_error(error.into()))?;
        let wal = !settings.allow_filesystem;
        let shared = SharedFile { place: Some(Arc::new(place)), ..SharedFile::reading(settings, wal) };
        let mut store = Self::connect(Arc::new(shared)).await?;
        MIGRATIONS.run(store.write.pool()).await.map_err(sql::migration)?;
        if store.shared.wal {
            // Readers are opened last: a reader of an empty file cannot tell that it is in WAL mode.
            store.read = readers(&store.shared.settings).await?;
        }
        store.shared.remember_files()?;
        Ok(store)
    }

    /// Opens an existing database only, so that a misspelt path creates no new one.
    pub async fn open_existing(settings: Settings) -> Result<Self, StoreError> {
        must_exist(&settings)?;
        Self::open(settings).await
    }

    /// Opens a database for reading while another process writes it. Every write is refused.
    pub async fn open_read_only(settings: Settings) -> Result<Self, StoreError> {
        must_exist(&settings)?;
        let read = readers(&settings).await?;
        let shared = SharedFile::reading(settings, true);
        let write = Arc::new(WritePool::read_only(read.clone()));
        Ok(Self { write, read, sequences: false, shared: Arc::new(shared) })
    }

    /// Opens a second set of connections in the same process, under the same lock file.
    ///
    /// Without WAL there can be no second set, and the result is a clone.
    pub async fn another(&self) -> Result<Self, StoreError> {
        if !self.shared.wal {
            return Ok(self.clone());
        }
        let mut store = Self::connect(Arc::clone(&self.shared)).await?;
        store.read = readers(&self.shared.settings).await?;
        Ok(store)
    }

    /// Waits for running statements and closes the files; the database file alone is then a complete copy.
    /// Dropping does the same without waiting.
    pub async fn close(&self) {
        if self.shared.wal {
            self.read.close().await;
        }
        journal::finish_the_log(self).await;
        self.write.pool().close().await;
    }

    async fn connect(shared: Arc<SharedFile>) -> Result<Self, StoreError> {
        let write = WritePool::open(&shared.settings, shared.wal).await?;
        Ok(Self { read: write.pool().clone(), write: Arc::new(write), sequences: false, shared })
    }

    /// Returns the pool for look-ups of many keys: a store for sequencing has the pages of the last batches in the cache
    /// of the connection that writes, while each commit empties the caches of those that read.
    fn look_ups(&self) -> &SqlitePool {
        match self.sequences && !self.write.is_in_doubt() {
            true => self.write.pool(),
            false => &self.read,
        }
    }

    /// Returns the pool for a write, if this process may still write; replaces the connection after a failed write.
    async fn writable(&self) -> Result<&SqlitePool, StoreError> {
        self.shared.check()?;
        self.write.repair(&self.shared).await?;
        Ok(self.write.pool())
    }

    /// Records the error of a write, so that the next write gets another connection, and returns the result.
    fn noting<T>(&self, written: Result<T, StoreError>) -> Result<T, StoreError> {
        written.inspect_err(|error| self.write.note(error))
    }
}

impl SharedFile {
    fn reading(settings: Settings, wal: bool) -> Self {
        Self {
            settings,
            place: None,
            wal,
            lease: Arc::default(),
            quotas: Counters::default(),
            lost: false.into(),
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.lost.load(Ordering::Acquire) {
            let text = "the database file was moved, replaced or truncated in use: start the process again";
            return Err(StoreError::Refused(text.into()));
        }
        let Some(place) = &self.place else {
            return Err(StoreError::Refused("the database was opened to be read only".into()));
        };
        place.check().map_err(|error| {
            let error = place::store_error(error);
            if matches!(error, StoreError::Refused(_)) {
                self.lost.store(true, Ordering::Release);
            }
            error
        })
    }

    fn remember_files(&self) -> Result<(), StoreError> {
        self.place.as_ref().map_or(Ok(()), |place| place.remember(self.wal).map_err(place::store_error))
    }
}

fn options(settings: &Settings) -> SqliteConnectOptions {
    sqlite::options(&settings.path, settings.busy_timeout)
}

fn must_exist(settings: &Settings) -> Result<(), StoreError> {
    // If the path cannot be examined, SQLite reports the error.
    match settings.path.try_exists() {
        Ok(false) => Err(StoreError::NoLog(format!("there is no {}", settings.path.display()))),
        Ok(true) | Err(_) => Ok(()),
    }
}

async fn readers(settings: &Settings) -> Result<SqlitePool, StoreError> {
    let pool = sqlite::readers(options(settings), settings.readers, settings.busy_timeout);
    pool.await.map_err(sql::store_error)
}

#[async_trait]
impl LogReader for Sqlite {
    async fn head(&self) -> Result<Head, StoreError> {
        reader::head(&self.read).await
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Option<Found>>, StoreError> {
        reader::find(self.look_ups(), digests).await
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Option<LeafIndex>>, StoreError> {
        reader::guards(self.look_ups(), keys).await
    }

    async fn entry(&self, index: LeafIndex) -> Result<Option<Entry>, StoreError> {
        Ok(reader::entries(&self.read, index, 1).await?.pop())
    }

    async fn entries(&self, from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError> {
        reader::entries(&self.read, from, limit).await
    }

    async fn entries_at(&self, leaves: &[LeafIndex]) -> Result<Vec<Entry>, StoreError> {
        reader::entries_at(&self.read, leaves).await
    }

    async fn digests(&self, from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError> {
        reader::digests(&self.read, from, limit).await
    }

    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError> {
        reader::collateral(&self.read, index).await
    }

    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError> {
        heads::list(&self.read, from, limit).await
    }

    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError> {
        heads::of_size(&self.read, size).await
    }

    async fn head_covering(&self, leaf: LeafIndex) -> Result<Option<CommittedHead>, StoreError> {
        heads::covering(&self.read, leaf).await
    }
}

#[async_trait]
impl LogWriter for Sqlite {
    async fn open(&self, origin: &str) -> Result<Head, StoreError> {
        self.noting(writer::open(self, origin).await)
    }

    async fn take_over(&self, holder: &str) -> Result<Head, StoreError> {
        self.noting(writer::take_over(self, holder).await)
    }

    async fn commit(&self, batch: &Batch) -> Result<(), CommitError> {
        writer::commit(self, batch).await.inspect_err(|error| match error {
            CommitError::NotCommitted(error) => self.write.note(error),
            CommitError::Unknown(_) => self.write.require(Repair::Reopen),
            CommitError::Fenced | CommitError::AlreadySeen | CommitError::GuardTaken => {}
        })
    }
}

#[async_trait]
impl TileStore for Sqlite {
    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<Bytes>>, StoreError> {
        tiles::tiles(&self.read, addresses).await
    }
}

#[async_trait]
impl SignatureStore for Sqlite {
    async fn keep_signatures(&self, signatures: &[HeadSignature]) -> Result<(), StoreError> {
        self.noting(heads::keep_signatures(self, signatures).await)
    }

    async fn signature(
        &self,
        size: TreeSize,
        kind: SignatureKind,
        kid: &[u8],
    ) -> Result<Option<HeadSignature>, StoreError> {
        heads::signature(&self.read, size, kind, kid).await
    }

    async fn newest_signed(&self, kind: SignatureKind) -> Result<Option<SignedHead>, StoreError> {
        heads::newest_signed(&self.read, kind).await
    }

    async fn signatures(
        &self,
        after: Option<TreeSize>,
        limit: usize,
    ) -> Result<Vec<HeadSignature>, StoreError> {
        heads::signatures(&self.read, after, limit).await
    }
}

#[async_trait]
impl Inbox for Sqlite {
    async fn enqueue_within(&self, item: &InboxItem, arrival: &Arrival<'_>) -> Result<Enqueued, StoreError> {
        let written = inbox::enqueue(self.writable().await?, item, arrival).await;
        self.noting(written)
    }

    async fn pending_keys(&self, after: Option<u64>, limit: usize) -> Result<Vec<PendingKey>, StoreError> {
        inbox::pending_keys(&self.read, after, limit).await
    }

    async fn submissions(&self, numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError> {
        inbox::submissions(&self.read, numbers).await
    }

    async fn inbox_use(&self) -> Result<InboxUse, StoreError> {
        inbox::in_use(&self.read).await
    }

    async fn progress(&self, digest: &EntryDigest) -> Result<Option<Progress>, StoreError> {
        inbox::progress(&self.read, digest).await
    }

    async fn refuse(&self, digest: &EntryDigest, failure: &str) -> Result<(), StoreError> {
        let written = inbox::refuse(self.writable().await?, digest, failure).await;
        self.noting(written)
    }

    async fn trim_inbox(&self, limit: usize) -> Result<u64, StoreError> {
        let written = inbox::trim(self.writable().await?, limit).await;
        self.noting(written)
    }

    async fn forget_failures(&self, keep: u64, limit: usize) -> Result<u64, StoreError> {
        let written = inbox::forget_failures(self.writable().await?, keep, limit).await;
        self.noting(written)
    }

    async fn waiting(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, InboxItem)>, StoreError> {
        inbox::waiting(&self.read, after, limit).await
    }
}

#[async_trait]
impl LogKeys for Sqlite {
    async fn keep_key(&self, key: &LogKey) -> Result<(), StoreError> {
        let written = keys::keep(self.writable().await?, key).await;
        self.noting(written)
    }

    async fn keys(&self) -> Result<Vec<LogKey>, StoreError> {
        keys::list(&self.read).await
    }
}

#[async_trait]
impl Lifecycle for Sqlite {
    async fn lease(&self, _holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        self.shared.check()?;
        Ok(LeaseFlag::take(&self.shared.lease).map(|lease| Box::new(lease) as Box<dyn Lease>))
    }

    fn for_sequencing(&self) -> Option<Arc<dyn SequencerStore>> {
        Some(Arc::new(Self { sequences: true, ..self.clone() }))
    }

    async fn close(&self) {
        Self::close(self).await;
    }

    async fn state(&self) -> Result<State, StoreError> {
        log_state::state(&self.read).await
    }

    async fn freeze(&self, holder: &str, at: u64) -> Result<Head, StoreError> {
        self.noting(moving::freeze(self, holder, at).await)
    }
}

#[async_trait]
impl ServerChecks for Sqlite {
    async fn check_durability(&self) -> Result<(), StoreError> {
        self.noting(writer::check_durability(self).await)
    }
}
