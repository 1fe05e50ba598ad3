//! [`LogStore`](store::LogStore) on PostgreSQL 14 or newer.
//!
//! A batch is one transaction that locks the log's head row, inserts, and moves the head by compare-and-swap on
//! epoch and size (`commit`); a take-over raises the epoch on a connection of its own (`head`); an advisory lock
//! is the lease (`lease`). The schema is in `migrations/postgres`; its triggers refuse changes that the trait
//! excludes.
//!
//! Requirements for an operator: the URL must lead to the primary and not through a pooler (a session without its
//! settings is refused), and the server must allow [`MAX_CONNECTIONS`] connections and seven more.
//!
//! Not here: hashing, signing, retries of a batch that met a duplicate (`sequencer`), SQLite (`store-sqlite`),
//! which shares no SQL with this crate because sqlx checks one database each.

mod clock;
mod commit;
mod cosignature;
mod custody;
mod durability;
mod entry;
mod error;
mod head;
mod history;
mod inbox;
mod kept_session;
mod keys;
mod lease;
mod limits;
mod lookup;
mod moving;
mod notices;
mod number;
mod partition;
mod pin;
mod promises;
mod quota;
mod schema;
mod session;
#[cfg(feature = "testing")]
pub mod testing;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use sqlx::PgPool;
use store::{
    Arrival, Batch, Collateral, CommitError, CommittedHead, Enqueued, Entry, Found, GuardKey, Head,
    HeadSignature, Inbox, InboxItem, InboxUse, Lease, Lifecycle, LogKey, LogKeys, LogReader, LogWriter,
    PendingKey, Progress, SequencerStore, ServerChecks, SignatureKind, SignatureStore, SignedHead, State,
    StoreError, TileAddress, TileStore,
};
use tokio::time::timeout;

use crate::commit::Sequencing;
use crate::error::{of_failure, too_late};
use crate::kept_session::KeptSession;
pub use crate::limits::MAX_CONNECTIONS;
use crate::notices::ServerWarnings;
use crate::partition::Partitions;
pub use crate::pin::PinDatabase;
pub use crate::schema::schema_version;
use crate::session::Server;

/// Location of a log, and settings of its connections.
#[derive(Clone, Debug)]
pub struct Options {
    server: Server,
    commit_timeout: Duration,
}

impl Options {
    /// Parses a `postgres://` URL. TLS follows its `sslmode` and `sslrootcert`; the default is `prefer`.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        Ok(Self { server: Server::from_url(url)?, commit_timeout: limits::COMMIT })
    }

    /// Sets the time after which an unanswered COMMIT counts as of unknown outcome; the default is 30 s.
    pub fn with_commit_timeout(self, commit_timeout: Duration) -> Self {
        Self { commit_timeout, ..self }
    }
}

/// Log in PostgreSQL.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    pool: PgPool,
    /// Pool of [`Lifecycle::for_sequencing`].
    sequencers: PgPool,
    /// Session for look-ups, of a store [for sequencing](Lifecycle::for_sequencing); others use the pool.
    look_ups: Option<Arc<KeptSession>>,
    sequencing: Arc<Sequencing>,
    /// Warnings with the answers to the commits that are promises.
    warnings: ServerWarnings,
    partitions: Arc<Partitions>,
    /// Whether [`LogWriter::open`] creates a log in an empty database.
    creates: bool,
}

impl Postgres {
    /// Migrates the database's schema to this program's version; refuses the schema of a newer program.
    pub async fn migrate(options: &Options) -> Result<(), StoreError> {
        schema::schema().migrate(&options.server.0, &session::MIGRATION).await.map_err(of_failure)
    }

    /// Connects to a database that has this program's schema.
    pub async fn connect(options: &Options) -> Result<Self, StoreError> {
        let mut connection = options.server.connect(&session::READER).await?;
        schema::schema().check(&mut connection, &session::READER).await.map_err(of_failure)?;
        session::close(connection).await;
        let warnings = ServerWarnings::new();
        Ok(Self {
            server: options.server.clone(),
            pool: options.server.pool(&session::READER, MAX_CONNECTIONS),
            sequencers: options.server.pool(&session::READER, limits::SEQUENCER_CONNECTIONS),
            look_ups: None,
            sequencing: Arc::new(Sequencing::new(warnings.clone(), options.commit_timeout)),
            warnings,
            partitions: Arc::default(),
            creates: true,
        })
    }

    /// Connects as [`connect`](Self::connect) does, for reads only: a login that may not write, and a standby server,
    /// suffice.
    pub async fn connect_read_only(options: &Options) -> Result<Self, StoreError> {
        Ok(Self { creates: false, ..Self::connect(options).await? })
    }

    /// Limits an operation to [`limits::ANSWER`]: a network that drops packets could leave it waiting for ever.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        timeout(limits::ANSWER, answer).await.map_err(|_| too_late("the database"))?
    }
}

#[async_trait]
impl LogReader for Postgres {
    async fn head(&self) -> Result<Head, StoreError> {
        self.in_time(head::read(&self.pool)).await
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Option<Found>>, StoreError> {
        let Some(look_ups) = &self.look_ups else {
            return self.in_time(entry::find(&self.pool, digests)).await;
        };
        self.in_time(async {
            let mut session = look_ups.take(&self.server).await?;
            let found = entry::find(&mut session.connection, digests).await?;
            session.keep();
            Ok(found)
        })
        .await
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Option<LeafIndex>>, StoreError> {
        let Some(look_ups) = &self.look_ups else {
            return self.in_time(entry::guards(&self.pool, keys)).await;
        };
        self.in_time(async {
            let mut session = look_ups.take(&self.server).await?;
            let found = entry::guards(&mut session.connection, keys).await?;
            session.keep();
            Ok(found)
        })
        .await
    }

    async fn entry(&self, index: LeafIndex) -> Result<Option<Entry>, StoreError> {
        self.in_time(entry::entry(&self.pool, index)).await
    }

    async fn entries(&self, from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.in_time(entry::entries(&self.pool, from, limit)).await
    }

    async fn entries_at(&self, leaves: &[LeafIndex]) -> Result<Vec<Entry>, StoreError> {
        self.in_time(entry::entries_at(&self.pool, leaves)).await
    }

    async fn digests(&self, from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError> {
        self.in_time(entry::digests(&self.pool, from, limit)).await
    }

    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError> {
        self.in_time(entry::collateral(&self.pool, index)).await
    }

    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError> {
        self.in_time(history::heads(&self.pool, from, limit)).await
    }

    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError> {
        self.in_time(history::head_of_size(&self.pool, size)).await
    }

    async fn head_covering(&self, leaf: LeafIndex) -> Result<Option<CommittedHead>, StoreError> {
        self.in_time(history::head_covering(&self.pool, leaf)).await
    }
}

#[async_trait]
impl LogWriter for Postgres {
    async fn open(&self, origin: &str) -> Result<Head, StoreError> {
        self.in_time(async {
            if self.creates {
                head::create(&self.pool, origin).await?;
            }
            head::open(&self.pool, origin).await
        })
        .await
    }

    async fn take_over(&self, holder: &str) -> Result<Head, StoreError> {
        head::take_over(&self.server, &self.warnings, holder).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), CommitError> {
        batch.check().map_err(CommitError::NotCommitted)?;
        self.partitions.make_room(&self.server, batch.to.size()).await;
        self.sequencing.commit(&self.server, batch).await
    }
}

#[async_trait]
impl TileStore for Postgres {
    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.in_time(entry::tiles(&self.pool, addresses)).await
    }
}

#[async_trait]
impl SignatureStore for Postgres {
    async fn keep_signatures(&self, signatures: &[HeadSignature]) -> Result<(), StoreError> {
        self.in_time(history::keep_signatures(&self.pool, signatures)).await
    }

    async fn signature(
        &self,
        size: TreeSize,
        kind: SignatureKind,
        kid: &[u8],
    ) -> Result<Option<HeadSignature>, StoreError> {
        self.in_time(history::signature(&self.pool, size, kind, kid)).await
    }

    async fn newest_signed(&self, kind: SignatureKind) -> Result<Option<SignedHead>, StoreError> {
        self.in_time(history::newest_signed(&self.pool, kind)).await
    }

    async fn signatures(
        &self,
        after: Option<TreeSize>,
        limit: usize,
    ) -> Result<Vec<HeadSignature>, StoreError> {
        self.in_time(history::signatures(&self.pool, after, limit)).await
    }
}

#[async_trait]
impl Inbox for Postgres {
    async fn enqueue_within(&self, item: &InboxItem, arrival: &Arrival<'_>) -> Result<Enqueued, StoreError> {
        self.in_time(inbox::enqueue(&self.pool, &self.warnings, item, arrival)).await
    }

    async fn pending_keys(&self, after: Option<u64>, limit: usize) -> Result<Vec<PendingKey>, StoreError> {
        self.in_time(inbox::pending_keys(&self.pool, after, limit)).await
    }

    async fn submissions(&self, numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError> {
        self.in_time(inbox::submissions(&self.pool, numbers)).await
    }

    async fn inbox_use(&self) -> Result<InboxUse, StoreError> {
        self.in_time(inbox::in_use(&self.pool)).await
    }

    async fn progress(&self, digest: &EntryDigest) -> Result<Option<Progress>, StoreError> {
        self.in_time(inbox::progress(&self.pool, digest)).await
    }

    async fn refuse(&self, digest: &EntryDigest, failure: &str) -> Result<(), StoreError> {
        self.in_time(inbox::refuse(&self.pool, digest, failure)).await
    }

    async fn trim_inbox(&self, limit: usize) -> Result<u64, StoreError> {
        self.in_time(inbox::trim(&self.pool, limit)).await
    }

    async fn forget_failures(&self, keep: u64, limit: usize) -> Result<u64, StoreError> {
        self.in_time(inbox::forget_failures(&self.pool, keep, limit)).await
    }

    async fn waiting(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, InboxItem)>, StoreError> {
        self.in_time(inbox::waiting(&self.pool, after, limit)).await
    }
}

#[async_trait]
impl LogKeys for Postgres {
    async fn keep_key(&self, key: &LogKey) -> Result<(), StoreError> {
        self.in_time(keys::keep(&self.pool, key)).await
    }

    async fn keys(&self) -> Result<Vec<LogKey>, StoreError> {
        self.in_time(keys::list(&self.pool)).await
    }
}

#[async_trait]
impl Lifecycle for Postgres {
    async fn lease(&self, holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        lease::lease(&self.server, holder).await
    }

    fn for_sequencing(&self) -> Option<Arc<dyn SequencerStore>> {
        Some(Arc::new(Self {
            server: self.server.clone(),
            pool: self.sequencers.clone(),
            sequencers: self.sequencers.clone(),
            look_ups: Some(Arc::default()),
            sequencing: Arc::clone(&self.sequencing),
            warnings: self.warnings.clone(),
            partitions: Arc::clone(&self.partitions),
            creates: self.creates,
        }))
    }

    async fn close(&self) {
        self.pool.close().await;
        self.sequencers.close().await;
    }

    async fn state(&self) -> Result<State, StoreError> {
        self.in_time(moving::state(&self.pool)).await
    }

    async fn freeze(&self, holder: &str, at: u64) -> Result<Head, StoreError> {
        head::freeze(&self.server, &self.warnings, holder, at).await
    }
}

#[async_trait]
impl ServerChecks for Postgres {
    async fn check_durability(&self) -> Result<(), StoreError> {
        self.in_time(durability::check(&self.server)).await
    }

    async fn clock(&self) -> Result<Option<Duration>, StoreError> {
        self.in_time(clock::read(&self.pool)).await.map(Some)
    }
}
