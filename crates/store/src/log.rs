//! The tree's entries and heads: reading them, and appending to them.

use async_trait::async_trait;
use merkle::{EntryDigest, LeafIndex, TreeSize};

use crate::{Batch, Collateral, CommitError, CommittedHead, Entry, Found, GuardKey, Head, StoreError};

/// Reads the entries, guards and heads of one log.
#[async_trait]
pub trait LogReader: Send + Sync + 'static {
    /// Reads the committed head.
    async fn head(&self) -> Result<Head, StoreError>;

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

    /// Reads the entries at these leaves, in the order of the leaves, each as [`entry`](Self::entry) does. Those at or
    /// beyond the committed size are left out.
    async fn entries_at(&self, leaves: &[LeafIndex]) -> Result<Vec<Entry>, StoreError>;

    /// Reads up to `limit` digests of entries from `from` on, in index order, without the statements, as entry
    /// bundles (C2SP tlog-tiles) need them. A gap is [`StoreError::Damaged`].
    async fn digests(&self, from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError>;

    /// Reads the collateral of an entry, in order of [`Collateral::kind`].
    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError>;

    /// Reads up to `limit` committed heads from batch number `from` on, in order.
    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError>;

    /// Reads the committed head of exactly this size.
    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError>;

    /// Reads the smallest committed head that covers a leaf: the one of its batch. `None` at or beyond the committed
    /// size.
    async fn head_covering(&self, leaf: LeafIndex) -> Result<Option<CommittedHead>, StoreError>;
}

/// Appends to one log. Only the sequencer, and commands that repair or create a log, request this trait.
#[async_trait]
pub trait LogWriter: LogReader {
    /// Inserts the log's row at size 0 if the database holds no log, and returns the head.
    ///
    /// Idempotent and safe against a concurrent call: all callers see one log. A database that holds a log of
    /// another origin is refused with [`StoreError::Refused`].
    async fn open(&self, origin: &str) -> Result<Head, StoreError>;

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
    /// [`Effect`](crate::Effect)s are written in the same transaction; one that freezes the log raises the epoch, as
    /// [`freeze`](crate::Lifecycle::freeze) does.
    async fn commit(&self, batch: &Batch) -> Result<(), CommitError>;
}
