//! The storage trait of a gateway's evidence: promises that bind every database.
//!
//! To this crate a *stream* is a name with a state that moves by compare-and-swap, and a sequence of *records*
//! numbered from 0 without gaps. A record is a signed statement with its accompanying data; it waits in the
//! *outbox* until the log has it. State, records and outbox move together, only in [`EvidenceStore::commit`]: a
//! commit that returned `Ok` survives power loss, so a call may be forwarded and a verdict given.
//!
//! One handle is one *instance*: one run of one gateway process. Only the instance may settle its open decisions
//! while its lease lasts; afterwards any instance may settle them as unknown.
//!
//! Not here: the meaning of a state and the admission of calls (`admission`), signatures, the log, and SQL
//! (`evidence-sqlite`, `evidence-postgres`).

#[cfg(feature = "contract")]
#[allow(clippy::unwrap_used)]
pub mod contract;
mod error;
mod group;
pub mod limits;
mod memory;
mod model;
mod stream_editor;
mod wrappers;

use std::time::Duration;

use async_trait::async_trait;
use merkle::EntryDigest;

pub use error::{CommitError, StoreError};
pub use fault_injection::Fault;
pub use group::{Group, Move};
pub use limits::check_instance_name;
pub use memory::Memory;
pub use model::*;
pub use stream_editor::StreamEditor;
pub use wrappers::{EvidenceMethod, FailingEvidence, MeasuredEvidence};

/// One gateway's evidence in one database. A handle is bound to an instance when it is opened.
///
/// Every method may be called concurrently from many tasks. An `Err` means that nothing was changed, with one
/// exception: if a connection dies, the answer to a write that happened can be lost. A commit then returns
/// [`CommitError::MayHaveHappened`]; every other write may be repeated. The cost of a call does not grow with the
/// number of streams, of records or of the records in the outbox.
#[async_trait]
pub trait EvidenceStore: Outbox + Instances + Upkeep + Send + Sync + 'static {
    /// Name of the instance that this handle belongs to; no earlier run has had it.
    fn instance(&self) -> &str;

    /// Reads the states of these streams: one answer per name, in order. `None`: there is no such stream, or it
    /// was pruned.
    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError>;

    /// Returns which of these claims are taken: one answer per claim, in order.
    async fn claimed(&self, claims: &[Claim]) -> Result<Vec<bool>, StoreError>;

    /// Moves streams, adds records to them and to the outbox, takes claims, opens and settles decisions: all of it
    /// or nothing. Once `Ok`, all of it survives power loss.
    ///
    /// Several changes of one stream are applied in the order given, each from the version that the one before it
    /// made. [`CommitError::Conflict`] names every stream that is at another version or holds one of the claims, and
    /// every stream of [`Change::relies_on`] at another version: load it and decide again. A store may name one of these
    /// kinds alone. Changes that contradict themselves ([`Group::of`]), records out of sequence and records that exist
    /// already are [`StoreError::Refused`].
    async fn commit(&self, changes: &[Change]) -> Result<(), CommitError>;

    /// Waits until a commit in doubt has ended, and returns whether it happened; to be called after
    /// [`CommitError::MayHaveHappened`], with the same changes. After the answer the old commit can no longer take
    /// effect, and the changes may be sent again if it did not happen.
    async fn happened(&self, changes: &[Change]) -> Result<bool, StoreError>;

    /// Reads a record by its id.
    async fn record(&self, id: &EntryDigest) -> Result<Option<StoredRecord>, StoreError>;

    /// Reads up to `limit` records of a stream from `from` on, in order of `seq`.
    async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<StoredRecord>, StoreError>;

    /// Reads up to `limit` streams that are not closed and whose `keep_until` is `at` or earlier, in order of that
    /// time. `at` is the time by the caller's clock; a database server with a clock of its own takes the earlier time.
    async fn due(&self, at: u64, limit: usize) -> Result<Vec<StreamSummary>, StoreError>;

    /// Reads up to `limit` streams whose names come after `after`, in order of name.
    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError>;
}

/// Records that wait for their delivery to the log.
#[async_trait]
pub trait Outbox: Send + Sync + 'static {
    /// Reads up to `limit` records that this instance has yet to deliver to the log, without the stuck ones.
    ///
    /// These are the instance's own records, and those of instances whose lease is over: first the records that were
    /// never stuck, then the others, which get a quarter of the places or more; each in order of commit (so a stream's in
    /// order of `seq`).
    async fn pending(&self, limit: usize) -> Result<Vec<PendingRecord>, StoreError>;

    /// Removes records from the outbox, and stores their positions in the log. Unknown records are skipped, and so
    /// are those delivered before, except that a receipt is stored if there was none. A crash may undo this: a
    /// record is delivered at least once.
    async fn delivered(&self, deliveries: &[Delivered]) -> Result<(), StoreError>;

    /// Marks records that the log refuses permanently: they stay in the outbox, counted, and are not pending until
    /// [`unstick`](Self::unstick). Unknown records are skipped, and so are delivered and stuck ones.
    async fn stuck(&self, refused: &[RefusedRecord]) -> Result<(), StoreError>;

    /// Reads up to `limit` of the stuck records, oldest first, with the reason.
    async fn stuck_records(&self, limit: usize) -> Result<Vec<StuckRecord>, StoreError>;

    /// Makes every stuck record pending again, as the cause may be removed; returns their number. They do not delay the
    /// records that were never stuck, and [`Backlog::oldest_at`] leaves them out.
    async fn unstick(&self) -> Result<u64, StoreError>;

    /// Counts the records in the outbox, of all instances.
    async fn backlog(&self) -> Result<Backlog, StoreError>;
}

/// Leases of the instances that share a database, and the decisions that ended instances left open.
#[async_trait]
pub trait Instances: Send + Sync + 'static {
    /// Reads up to `limit` decisions that were served, have no outcome, and belong to an instance whose lease is
    /// over, oldest first. Their outcome is unknown; committing it in [`Change::settled`] removes them from this
    /// list.
    async fn orphans(&self, limit: usize) -> Result<Vec<OpenDecision>, StoreError>;

    /// Renews this instance's lease, for `lasts` from now by the database's clock. Returns the time since 1970 by the clock
    /// of a database server, read during the call; `None` for a database without a clock of its own.
    async fn renew(&self, lasts: Duration) -> Result<Option<Duration>, StoreError>;

    /// Ends this instance's lease: any instance may settle its open decisions at once.
    async fn leave(&self) -> Result<(), StoreError>;
}

/// Removal of old data, and the check of the database's settings.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// Removes old records and streams, at most `limit` of each kind, and returns how many of each.
    ///
    /// A record is removed once it is delivered, was made before `horizon.records`, and is settled or needs no
    /// outcome; the oldest records are examined first, and a record committed after a younger one may have to wait
    /// for it. A stream is removed once it is closed, its `keep_until` is before `horizon.streams`, and none of
    /// its records is left: a name never numbers its records anew while older ones exist. Its claims are removed
    /// with it. Once `Ok`, the database no longer shows the removed data; the file system may keep the bytes until
    /// they are overwritten.
    ///
    /// A database server with a clock of its own removes nothing before its time by that clock either: if the caller's is
    /// ahead, other instances still rely on the streams and their claims.
    async fn prune(&self, horizon: Horizon, limit: usize) -> Result<Pruned, StoreError>;

    /// Refuses a database whose settings can lose an acknowledged commit (`fsync` off and the like).
    async fn check_durability(&self) -> Result<(), StoreError>;
}
