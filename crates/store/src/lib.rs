//! The storage traits of a log: promises that bind every database.
//!
//! To this crate an entry is opaque bytes at a position. The history can fork in one place only:
//! [`LogStore::commit`], which moves the head by compare-and-swap on epoch, size and root, in the same transaction
//! as the entries that the head covers. All other data is inserted and never changed, except the right-most tile
//! of a level, which only grows, and the bytes of an entry, which can be erased ([`Custody`]).
//!
//! The supertraits store what belongs to the log and is not part of its tree: contradictions ([`Reports`]),
//! witnesses' signatures ([`Cosignatures`]), the lookup index ([`LookupIndex`]), usage counters ([`Quotas`]) and
//! the succession of signing keys ([`KeyRotation`]). [`Lifecycle`] ends a log; [`HistoryExport`] and [`HistoryImport`]
//! continue it in another database. A consumer that needs one of them names that one.
//!
//! Not here: which statements may enter (`registration`), their order and the signing of heads (`sequencer`), SQL
//! (`store-sqlite`, `store-postgres`).

#[cfg(feature = "contract")]
#[allow(clippy::unwrap_used)]
pub mod contract;
mod cosignature;
pub mod custody;
mod failing;
pub mod fsck;
mod inbox;
mod lifecycle;
pub mod lookup;
mod memory;
mod model;
pub mod moving;
mod pin;
pub mod proofs;
pub mod quota;
mod report;
pub mod rotation;
mod signed;
mod tiles;

pub use cosignature::{Cosignature, Cosignatures};
pub use custody::{Custody, Erased, Hold, Standing};
pub use failing::{FailingStore, StoreMethod};
pub use fault_injection::Fault;
pub use inbox::{Arrival, Enqueued, Inbox, InboxBounds, InboxUse, PendingKey};
pub use lifecycle::{Lease, Lifecycle, ServerChecks};
pub use lookup::{Indexed, Lookup, LookupIndex, Order, Page, Query, Term};
pub use memory::Memory;
pub use model::*;
pub use moving::{GuardRow, History, HistoryExport, HistoryImport, SeenKey, SeenRow, Source, State};
pub use pin::{Pin, PinError, PinStore};
pub use quota::Quotas;
pub use report::{KeptReport, REPORTS_PER_GUARD, Report, Reports};
pub use rotation::{KeyAnnouncement, KeyRotation, LogKeys};
pub use signed::SignatureStore;
pub use tiles::TileStore;

use async_trait::async_trait;
use merkle::{EntryDigest, LeafIndex, TreeSize};

/// One log in one database. An implementation is bound to a log when it is opened.
///
/// Every method may be called concurrently from many tasks. An `Err` means that nothing was changed, with one
/// exception: if a connection dies, the answer to a write that happened can be lost. Such a
/// [`StoreError::Unavailable`] is harmless, as every write except [`commit`](Self::commit) may be repeated; a
/// commit returns [`CommitError::Unknown`] instead.
#[async_trait]
pub trait LogStore:
    TileStore
    + SignatureStore
    + Inbox
    + LogKeys
    + Lifecycle
    + ServerChecks
    + HistoryExport
    + HistoryImport
    + Cosignatures
    + Custody
    + KeyRotation
    + LookupIndex
    + Quotas
    + Reports
    + Send
    + Sync
    + 'static
{
    /// Inserts the log's row at size 0 if the database holds no log, and returns the head.
    ///
    /// Idempotent and safe against a concurrent call: all callers see one log. A database that holds a log of
    /// another origin is refused with [`StoreError::Refused`].
    async fn open(&self, origin: &str) -> Result<Head, StoreError>;

    /// Reads the committed head.
    async fn head(&self) -> Result<Head, StoreError>;

    /// Raises the epoch by one, durably, and returns the head after that.
    ///
    /// Waits for a commit in progress and so sees it; every later commit under an older epoch is
    /// [`CommitError::Fenced`]. This also settles a commit of unknown outcome: the head that this method returns
    /// is durable and says whether the commit happened.
    async fn take_over(&self, holder: &str) -> Result<Head, StoreError>;

    /// Appends a batch and moves the head from `batch.from` to `batch.to`, all or nothing.
    ///
    /// Succeeds for at most one caller holding `batch.from`, across processes and restarts: epoch, size and root
    /// are compared before anything else. Once `Ok`, entries, guards, tiles, outcomes and head survive power loss
    /// and the head may be signed.
    ///
    /// A batch without entries only settles inbox items: `to` equals `from`, and no head is added to the history.
    /// A batch that contradicts itself ([`Batch::check`]) is [`CommitError::NotCommitted`]. The batch's
    /// [`Effect`]s are written in the same transaction; one that freezes the log raises the epoch, as
    /// [`freeze`](Lifecycle::freeze) does.
    async fn commit(&self, batch: &Batch) -> Result<(), CommitError>;

    /// Looks up digests of entries and of their twins: one answer per digest, in order. [`Found::digest`] is the
    /// entry's own digest and differs from the one asked for if that is a twin.
    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Option<Found>>, StoreError>;

    /// Looks up the entries that hold these guards: one answer per key, in order; `None` for a free guard.
    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Option<LeafIndex>>, StoreError>;

    /// Reads one entry as stored; `None` at or beyond the committed size. Call [`Entry::verified`] before the
    /// entry is served. A missing row below the size is [`StoreError::Damaged`].
    async fn entry(&self, index: LeafIndex) -> Result<Option<Entry>, StoreError>;

    /// Reads up to `limit` entries from `from` on, in index order; a gap is [`StoreError::Damaged`].
    async fn entries(&self, from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// Reads up to `limit` digests of entries from `from` on, in index order, without the statements, as entry
    /// bundles (C2SP tlog-tiles) need them. A gap is [`StoreError::Damaged`].
    async fn digests(&self, from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError>;

    /// Reads the collateral of an entry, in order of [`Collateral::kind`].
    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError>;

    /// Reads up to `limit` committed heads from batch number `from` on, in order.
    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError>;

    /// Reads the committed head of exactly this size.
    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError>;
}
