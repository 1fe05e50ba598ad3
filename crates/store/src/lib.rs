//! The storage traits of a log: promises that bind every database.
//!
//! To this crate an entry is opaque bytes at a position. The history can fork in one place only:
//! [`LogStore::commit`], which moves the head by compare-and-swap on epoch, size and root, in the same transaction
//! as the entries that the head covers. All other data is inserted and never changed, except the right-most tile
//! of a level, which only grows, and the bytes of an entry, which can be erased ([`Custody`]).
//!
//! The supertraits store what belongs to the log and is not part of its tree: contradictions ([`Reports`]),
//! witnesses' signatures ([`Cosignatures`]), the lookup index ([`LookupIndex`]), usage counters ([`Quotas`]) and
//! the succession of signing keys ([`KeyRotation`]). [`Moving`] ends a log and continues it in another database.
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
pub mod lookup;
mod memory;
mod model;
pub mod moving;
mod pin;
pub mod proofs;
pub mod quota;
mod report;
pub mod rotation;

pub use cosignature::{Cosignature, Cosignatures};
pub use custody::{Custody, Erased, Hold, Standing};
pub use failing::{Call, Failing, Fault};
pub use inbox::{Arrival, Enqueued, InboxBounds, InboxUse, PendingKey};
pub use lookup::{Indexed, Lookup, LookupIndex, Order, Page, Query, Term};
pub use memory::Memory;
pub use model::*;
pub use moving::{GuardRow, History, Moving, SeenKey, SeenRow, Source, State};
pub use pin::{Pin, PinError, PinStore};
pub use quota::Quotas;
pub use report::{KeptReport, REPORTS_PER_GUARD, Report, Reports};
pub use rotation::{KeyAnnouncement, KeyRotation};

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
    Cosignatures + Custody + KeyRotation + LookupIndex + Moving + Quotas + Reports + Send + Sync + 'static
{
    /// Inserts the log's row at size 0 if the database holds no log, and returns the head.
    ///
    /// Idempotent and safe against a concurrent call: all callers see one log. A database that holds a log of
    /// another origin is refused with [`StoreError::Refused`].
    async fn open(&self, origin: &str) -> Result<Head, StoreError>;

    /// Reads the committed head.
    async fn head(&self) -> Result<Head, StoreError>;

    /// Asks for the right to *try* to sequence. `None`: another process holds it now.
    ///
    /// The lease only avoids contention. Correctness rests on the epoch, which fences all but one process.
    async fn lease(&self, holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError>;

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
    /// [`freeze`](Moving::freeze) does.
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

    /// Reads tiles as stored: one answer per address, in order. The right-most tile of a level may be partial, or
    /// have grown since it was last read.
    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<bytes::Bytes>>, StoreError>;

    /// Reads up to `limit` committed heads from batch number `from` on, in order.
    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError>;

    /// Reads the committed head of exactly this size.
    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError>;

    /// Stores signatures over committed heads, all of them or none. A second signature for the same (size, kind,
    /// kid) is ignored: the first stays. A size that was never committed is [`StoreError::Refused`].
    async fn keep_signatures(&self, signatures: &[HeadSignature]) -> Result<(), StoreError>;

    /// Stores one signature, as [`keep_signatures`](Self::keep_signatures) does.
    async fn keep_signature(&self, signature: &HeadSignature) -> Result<(), StoreError> {
        self.keep_signatures(std::slice::from_ref(signature)).await
    }

    /// Reads the signature of this kind by this key over the head of this size.
    async fn signature(
        &self,
        size: TreeSize,
        kind: SignatureKind,
        kid: &[u8],
    ) -> Result<Option<HeadSignature>, StoreError>;

    /// Reads the newest head that has a signature of this kind, with that signature.
    async fn newest_signed(&self, kind: SignatureKind) -> Result<Option<SignedHead>, StoreError>;

    /// Reads up to `limit` signatures over heads larger than `after`, by size, then kind, then kid. The signatures
    /// of one head are never split, so the result may be a little longer than `limit`.
    async fn signatures(
        &self,
        after: Option<TreeSize>,
        limit: usize,
    ) -> Result<Vec<HeadSignature>, StoreError>;

    /// Stores an admitted statement durably until it is sequenced. After [`Enqueued::Kept`], the service may
    /// answer 202.
    ///
    /// Nothing happens if the statement is pending or known as registered. After a failed outcome it opens a new
    /// attempt, if the inbox has room for it. An attempt takes room until it has an outcome, and at the longest
    /// until [`trim_inbox`](Self::trim_inbox) has removed it. Concurrent calls may exceed a bound by one item
    /// each.
    async fn enqueue_within(&self, item: &InboxItem, arrival: &Arrival<'_>) -> Result<Enqueued, StoreError>;

    /// Stores an item without bounds, of unknown issuer and time ([`Arrival::UNKNOWN`]).
    async fn enqueue(&self, item: &InboxItem) -> Result<(), StoreError> {
        self.enqueue_within(item, &Arrival::UNKNOWN).await.map(drop)
    }

    /// Reads up to `limit` pending inbox items without their submissions, in order of arrival, beginning after
    /// number `after`. A number is never used twice; of two items that arrive at the same moment, the one with the
    /// smaller number may become visible a little later.
    async fn pending_keys(&self, after: Option<u64>, limit: usize) -> Result<Vec<PendingKey>, StoreError>;

    /// Reads the submissions of these items, with their numbers, in order of arrival. An item that is no longer
    /// pending is left out.
    async fn submissions(&self, numbers: &[u64]) -> Result<Vec<(u64, bytes::Bytes)>, StoreError>;

    /// Reads up to `limit` pending inbox items with their submissions, oldest first.
    async fn pending(&self, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        Ok(self.waiting(None, limit).await?.into_iter().map(|(_, item)| item).collect())
    }

    /// Reads number, size and age of the pending items.
    async fn inbox_use(&self) -> Result<InboxUse, StoreError>;

    /// Reads the state of a statement in the inbox. `None`: it was never enqueued, or was trimmed since.
    async fn progress(&self, digest: &EntryDigest) -> Result<Option<Progress>, StoreError>;

    /// Ends the pending attempt, if there is one, with [`Progress::Failed`]. Terminal until the statement is
    /// enqueued again.
    async fn refuse(&self, digest: &EntryDigest, failure: &str) -> Result<(), StoreError>;

    /// Removes at most `limit` finished inbox attempts and returns their number. Of a failed attempt only the
    /// submission is removed: [`progress`](Self::progress) still returns the reason.
    async fn trim_inbox(&self, limit: usize) -> Result<u64, StoreError>;

    /// Publishes a key that signs heads. A known kid is left unchanged.
    async fn keep_key(&self, key: &LogKey) -> Result<(), StoreError>;

    /// Reads every key that ever signed heads of this log, oldest first.
    async fn keys(&self) -> Result<Vec<LogKey>, StoreError>;

    /// Refuses a database whose settings can lose an acknowledged commit (`fsync` off and the like).
    async fn check_durability(&self) -> Result<(), StoreError>;

    /// Returns a second handle on the log with connections reserved for the sequencer, if public reads could
    /// otherwise occupy all connections; `None` if the implementation does not need one.
    fn for_sequencing(&self) -> Option<std::sync::Arc<dyn LogStore>> {
        None
    }

    /// Waits for running calls and closes every connection. Later calls fail.
    async fn close(&self) {}
    /// Reads the wall clock of the database server, as time since 1970. `None` for a database on this machine,
    /// which has the same clock as the process.
    async fn clock(&self) -> Result<Option<std::time::Duration>, StoreError> {
        Ok(None)
    }
}

/// Right to try to sequence, until dropped or lost.
#[async_trait]
pub trait Lease: Send + Sync {
    /// Resolves once the right is lost: the connection died, the lock was stolen, or the server restarted.
    async fn lost(&mut self);
}
