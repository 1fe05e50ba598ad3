//! [`EvidenceStore`] on PostgreSQL 14 or newer, for gateways that share streams.
//!
//! A commit is one statement, a function of the schema: it locks the streams in order of name, compares their
//! versions, writes, and is committed by the server before it answers. So a commit is one round trip and one
//! flush, and no lock waits for a network. The schema is in `migrations/evidence-postgres`; its triggers refuse
//! changes that the trait excludes, and it has a PostgreSQL schema of its own, so a log may be in the same
//! database.
//!
//! Each handle registers its instance with a lease by the server's clock, and again if the lease was over for so long that
//! another instance has removed the registration. A commit whose answer was lost is
//! settled by raising the instance's epoch, which waits for a running commit and excludes a later one (`writer`).
//!
//! Requirements for an operator: the URL must lead to the primary and not through a pooler (a session without its
//! settings is refused), and the server must allow [`MAX_CONNECTIONS`] connections and three more. Left out: a
//! commit whose wait for a synchronous standby is cancelled by hand counts as committed.

mod error;
mod instance;
mod limits;
mod number;
mod outbox;
mod prune;
mod read_only;
mod reader;
mod schema;
mod session;
mod stream_editor;
#[cfg(feature = "testing")]
pub mod testing;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use evidence::{
    Backlog, Change, Claim, CommitError, Delivered, EvidenceStore, Group, Horizon, Instances, OpenDecision,
    Outbox, PendingRecord, Pruned, RefusedRecord, StoreError, StoredRecord, StoredStream, StreamSummary,
    StuckRecord, Upkeep,
};
use merkle::EntryDigest;
use sqlx::PgPool;
use tokio::time::timeout;

use crate::error::{of_failure, too_late};
use crate::instance::Registration;
pub use crate::limits::{COMMIT, MAX_CONNECTIONS};
pub use crate::read_only::PostgresReader;
pub use crate::schema::schema_version;
use crate::session::Server;
pub use crate::stream_editor::PostgresStreamEditor;
use crate::writer::CommitSession;

/// Location of the evidence, and settings of its connections.
#[derive(Clone, Debug)]
pub struct Options {
    server: Server,
    commit_timeout: Duration,
}

impl Options {
    /// Parses a `postgres://` URL. TLS follows its `sslmode` and `sslrootcert`; the default is `prefer`.
    ///
    /// # Errors
    ///
    /// If the URL is invalid.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        Ok(Self { server: Server::from_url(url)?, commit_timeout: COMMIT })
    }

    /// Sets the time after which an unanswered commit counts as of unknown outcome; the default is [`COMMIT`].
    pub fn with_commit_timeout(self, commit_timeout: Duration) -> Self {
        Self { commit_timeout, ..self }
    }
}

/// Evidence of a gateway in PostgreSQL.
#[derive(Debug)]
pub struct Postgres {
    registration: Arc<Registration>,
    server: Server,
    pool: PgPool,
    courier: PgPool,
    writer: CommitSession,
}

impl Postgres {
    /// Migrates the database's schema to this program's version; refuses the schema of a newer program.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached, or must not be changed.
    pub async fn migrate(options: &Options) -> Result<(), StoreError> {
        schema::schema().migrate(&options.server.0, &session::MIGRATION).await.map_err(of_failure)
    }

    /// Connects to a database that has this program's schema, and registers the instance.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached or has another schema, and if the instance's name was used before.
    pub async fn connect(options: &Options, instance: &str) -> Result<Self, StoreError> {
        evidence::check_instance_name(instance)?;
        let mut connection = options.server.connect(&session::READER).await?;
        schema::schema().check(&mut connection, &session::READER).await.map_err(of_failure)?;
        let registration = Arc::new(Registration::new(&mut connection, instance).await?);
        session::close(connection).await;
        Ok(Self {
            server: options.server.clone(),
            pool: options.server.pool(&session::READER, MAX_CONNECTIONS),
            courier: options.server.pool(&session::COURIER, 1),
            writer: CommitSession::new(Arc::clone(&registration), options.commit_timeout),
            registration,
        })
    }

    /// Limits an operation to [`limits::ANSWER`]: a network that drops packets could leave it waiting for ever.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        timeout(limits::ANSWER, answer).await.map_err(|_| too_late("the database"))?
    }
}

#[async_trait]
impl EvidenceStore for Postgres {
    fn instance(&self) -> &str {
        self.registration.name()
    }

    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        self.in_time(reader::streams(&self.pool, names)).await
    }

    async fn claimed(&self, claims: &[Claim]) -> Result<Vec<bool>, StoreError> {
        self.in_time(reader::claimed(&self.pool, claims)).await
    }

    async fn commit(&self, changes: &[Change]) -> Result<(), CommitError> {
        let group = Group::of(changes)?;
        if !group.moves.is_empty() {
            self.writer.commit(&self.server, &group).await?;
        }
        Ok(())
    }

    async fn happened(&self, changes: &[Change]) -> Result<bool, StoreError> {
        let group = Group::of(changes)?;
        self.writer.happened(&self.server, &group).await
    }

    async fn record(&self, id: &EntryDigest) -> Result<Option<StoredRecord>, StoreError> {
        self.in_time(reader::record(&self.pool, id)).await
    }

    async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<StoredRecord>, StoreError> {
        self.in_time(reader::records(&self.pool, stream, from, limit)).await
    }

    async fn due(&self, at: u64, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        self.in_time(reader::due(&self.pool, at, limit)).await
    }

    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        self.in_time(reader::list(&self.pool, after, limit)).await
    }
}

#[async_trait]
impl Outbox for Postgres {
    async fn pending(&self, limit: usize) -> Result<Vec<PendingRecord>, StoreError> {
        self.in_time(outbox::pending(&self.pool, self.registration.number(), limit)).await
    }

    async fn delivered(&self, deliveries: &[Delivered]) -> Result<(), StoreError> {
        self.in_time(outbox::delivered(&self.courier, self.registration.number(), deliveries)).await
    }

    async fn stuck(&self, refused: &[RefusedRecord]) -> Result<(), StoreError> {
        self.in_time(outbox::stick(&self.pool, self.registration.number(), refused)).await
    }

    async fn stuck_records(&self, limit: usize) -> Result<Vec<StuckRecord>, StoreError> {
        self.in_time(outbox::stuck_records(&self.pool, limit)).await
    }

    async fn unstick(&self) -> Result<u64, StoreError> {
        self.in_time(outbox::unstick(&self.pool, self.registration.number())).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.in_time(outbox::backlog(&self.pool)).await
    }
}

#[async_trait]
impl Instances for Postgres {
    async fn orphans(&self, limit: usize) -> Result<Vec<OpenDecision>, StoreError> {
        self.in_time(reader::orphans(&self.pool, limit)).await
    }

    async fn renew(&self, lasts: Duration) -> Result<Option<Duration>, StoreError> {
        self.in_time(self.registration.renew(&self.courier, lasts)).await.map(Some)
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.in_time(self.registration.set_lease(&self.courier, Duration::ZERO)).await.map(drop)
    }
}

#[async_trait]
impl Upkeep for Postgres {
    async fn prune(&self, horizon: Horizon, limit: usize) -> Result<Pruned, StoreError> {
        self.in_time(prune::prune(&self.pool, self.registration.number(), horizon, limit)).await
    }

    async fn check_durability(&self) -> Result<(), StoreError> {
        self.in_time(writer::check_durability(&self.server)).await
    }
}
