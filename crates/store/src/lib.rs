//! What a log's database promises, in words that bind every implementation.
//!
//! To this crate an entry is opaque bytes at a position. History can fork in one place only:
//! [`LogStore::commit`], which moves the head by compare-and-swap on epoch and size in the same
//! transaction as the entries that the head covers. Everything else is inserted and never changed,
//! but for the right-most tile of a level, which only grows, and the bytes of an entry, which can be
//! erased ([`Custody`]). Beside the log stand what contradicts it ([`Reports`]), what witnesses said
//! about it ([`Cosignatures`]), what was read from it ([`LookupIndex`]) and what was used of it
//! ([`Quotas`]). Keys that sign its heads replace each other by [`KeyRotation`]. A log ends, and begins again in another database, by [`Moving`].
//!
//! Not here: which statements may enter (`registration`), their order and the signing of heads
//! (`sequencer`), SQL (`store-sqlite`, `store-postgres`).

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

/// One log in one database. Implementations are bound to a log when they are opened.
///
/// Every method may be called concurrently from many tasks. An `Err` means that nothing was changed,
/// with one exception: a connection that dies can swallow the answer of a write that happened. Such
/// a [`StoreError::Unavailable`] is harmless, as every write but [`commit`](Self::commit) may be
/// repeated; a commit says it with [`CommitError::Unknown`].
#[async_trait]
pub trait LogStore:
    Cosignatures + Custody + KeyRotation + LookupIndex + Moving + Quotas + Reports + Send + Sync + 'static
{
    /// Makes the log's row at size 0 when the database holds none, and answers the head.
    ///
    /// Idempotent and safe against a concurrent call: all callers see one log. A database that
    /// already holds a log of another origin is refused with [`StoreError::Refused`].
    async fn open(&self, origin: &str) -> Result<Head, StoreError>;

    /// The committed head, read now.
    async fn head(&self) -> Result<Head, StoreError>;

    /// Asks for the right to *try* to sequence. `None`: another process has it now.
    ///
    /// The lease decides who tries, never who is right: that is the epoch's work.
    async fn lease(&self, holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError>;

    /// Raises the epoch by one, durably, and answers the head as it then stands.
    ///
    /// Waits for a commit in flight and so sees it; every later commit under an older epoch is
    /// [`CommitError::Fenced`]. Also the way to settle a commit of unknown outcome: once this
    /// answers, the head it shows is the truth and durable.
    async fn take_over(&self, holder: &str) -> Result<Head, StoreError>;

    /// Appends a batch and moves the head from `batch.from` to `batch.to`, all or nothing.
    ///
    /// Succeeds for at most one caller holding `batch.from`, across processes and restarts: epoch,
    /// size and root are compared before anything else is looked at. Once `Ok`, entries, guards,
    /// tiles, outcomes and head survive power loss and the head may be signed.
    ///
    /// A batch without entries only settles inbox items: `to` equals `from`, and no head is added
    /// to the history. A batch that contradicts itself ([`Batch::check`]) is
    /// [`CommitError::NotCommitted`]. Its effects happen in the same transaction; one that freezes the log raises the
    /// epoch, as [`freeze`](Moving::freeze) does.
    async fn commit(&self, batch: &Batch) -> Result<(), CommitError>;

    /// Which of these digests are in the log, or are the twin of an entry: one answer per digest,
    /// in order. A hit names the entry found; compare its digest with the one asked for.
    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Option<Found>>, StoreError>;

    /// Which of these guards are taken, and by which entry: one answer per key, in order.
    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Option<LeafIndex>>, StoreError>;

    /// One entry as stored, or `None` at or beyond the committed size. [`Entry::verified`] before
    /// it is served. A missing row below the size is [`StoreError::Damaged`].
    async fn entry(&self, index: LeafIndex) -> Result<Option<Entry>, StoreError>;

    /// Up to `limit` entries from `from` on, in index order; a gap is [`StoreError::Damaged`].
    async fn entries(&self, from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// Up to `limit` digests of entries from `from` on, in index order, without their statements: what an entry bundle
    /// holds. A gap is [`StoreError::Damaged`].
    async fn digests(&self, from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError>;

    /// What came beside an entry and is not under its leaf hash, in order of kind.
    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError>;

    /// Tiles by address, as stored (the right-most of a level may be partial or have grown since
    /// it was last read): one answer per address, in order.
    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<bytes::Bytes>>, StoreError>;

    /// Up to `limit` committed heads with a batch number of `from` or more, in order.
    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError>;

    /// The committed head of exactly this size.
    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError>;

    /// Keeps signatures over committed heads, all of them or none. A second one for the same (size, kind,
    /// kid) is ignored: the first stands. A size that was never committed is [`StoreError::Refused`].
    async fn keep_signatures(&self, signatures: &[HeadSignature]) -> Result<(), StoreError>;

    /// The same for one.
    async fn keep_signature(&self, signature: &HeadSignature) -> Result<(), StoreError> {
        self.keep_signatures(std::slice::from_ref(signature)).await
    }

    /// The signature of this kind by this key over the head of this size.
    async fn signature(
        &self,
        size: TreeSize,
        kind: SignatureKind,
        kid: &[u8],
    ) -> Result<Option<HeadSignature>, StoreError>;

    /// The newest head that has a signature of this kind, with that signature.
    async fn newest_signed(&self, kind: SignatureKind) -> Result<Option<SignedHead>, StoreError>;

    /// Up to `limit` signatures over heads larger than `after`, by size, then kind, then kid. The
    /// signatures of one head are never split, so the answer may be a little longer than `limit`.
    async fn signatures(
        &self,
        after: Option<TreeSize>,
        limit: usize,
    ) -> Result<Vec<HeadSignature>, StoreError>;

    /// Keeps an admitted statement durably until it is sequenced. Once [`Enqueued::Kept`], a 202 may be given.
    ///
    /// Nothing happens while the statement is pending or known as registered. After a failed
    /// outcome it opens a new attempt, if the inbox has room for it. An attempt takes room until it
    /// has an outcome, and at the longest until [`trim_inbox`](Self::trim_inbox) has forgotten it.
    /// Calls at the same moment may exceed a bound by one item each.
    async fn enqueue_within(&self, item: &InboxItem, arrival: &Arrival<'_>) -> Result<Enqueued, StoreError>;

    /// The same without bounds, for an issuer and a time that are not known.
    async fn enqueue(&self, item: &InboxItem) -> Result<(), StoreError> {
        self.enqueue_within(item, &Arrival::UNKNOWN).await.map(drop)
    }

    /// Up to `limit` pending inbox items without their submissions, in order of arrival, from the
    /// one after number `after` on. A number is never given twice; of two items that arrive at the
    /// same moment the one with the smaller number may be seen a little later.
    async fn pending_keys(&self, after: Option<u64>, limit: usize) -> Result<Vec<PendingKey>, StoreError>;

    /// The submissions of these items, with their numbers, in order of arrival. An item that is no
    /// longer pending is left out.
    async fn submissions(&self, numbers: &[u64]) -> Result<Vec<(u64, bytes::Bytes)>, StoreError>;

    /// Up to `limit` pending inbox items with their submissions, oldest first.
    async fn pending(&self, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        Ok(self.waiting(None, limit).await?.into_iter().map(|(_, item)| item).collect())
    }

    /// How much is pending.
    async fn inbox_use(&self) -> Result<InboxUse, StoreError>;

    /// Where a statement handed to the inbox stands. `None`: never handed in, or trimmed since.
    async fn progress(&self, digest: &EntryDigest) -> Result<Option<Progress>, StoreError>;

    /// Ends the pending attempt, if there is one, without an entry. Terminal until the statement is
    /// enqueued again.
    async fn refuse(&self, digest: &EntryDigest, failure: &str) -> Result<(), StoreError>;

    /// Forgets at most `limit` finished inbox attempts and answers how many. Of a failed one only
    /// the submission goes: [`progress`](Self::progress) still says why it failed.
    async fn trim_inbox(&self, limit: usize) -> Result<u64, StoreError>;

    /// Publishes a key that signs heads. A known kid is left as it is.
    async fn keep_key(&self, key: &LogKey) -> Result<(), StoreError>;

    /// Every key that ever signed heads of this log, oldest first.
    async fn keys(&self) -> Result<Vec<LogKey>, StoreError>;

    /// Refuses a database that would forget a commit it acknowledged (fsync off and the like).
    async fn check_durability(&self) -> Result<(), StoreError>;

    /// The same log over connections of the sequencer's own, where reads of the public could otherwise take all of them.
    fn for_sequencing(&self) -> Option<std::sync::Arc<dyn LogStore>> {
        None
    }

    /// Ends the use of the database: waits for what is running and closes every connection. Later calls fail.
    async fn close(&self) {}
    /// The wall clock of the database's server, since 1970, read now. `None` for a database on this machine: its clock is ours.
    async fn clock(&self) -> Result<Option<std::time::Duration>, StoreError> {
        Ok(None)
    }
}

/// The right to try to sequence, until dropped or lost.
#[async_trait]
pub trait Lease: Send + Sync {
    /// Resolves once the right is gone: connection dead, lock stolen, server restarted.
    async fn lost(&mut self);
}
