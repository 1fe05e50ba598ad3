//! The inbox: admitted statements that wait for the sequencer, as attempts with one outcome each.

use async_trait::async_trait;
use bytes::Bytes;
use merkle::EntryDigest;

use crate::{InboxItem, Progress, StoreError};

/// Maximum length of a stored issuer name, in bytes; names are stored for display only.
const ISSUER_BYTES: usize = 256;

/// Durable queue of admitted statements.
#[async_trait]
pub trait Inbox: Send + Sync + 'static {
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
    async fn submissions(&self, numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError>;

    /// Reads up to `limit` pending inbox items with their submissions, oldest first.
    async fn pending(&self, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        Ok(self.waiting(None, limit).await?.into_iter().map(|(_, item)| item).collect())
    }

    /// Reads number, size and age of the pending items.
    async fn inbox_use(&self) -> Result<InboxUse, StoreError>;

    /// Reads the state of a statement in the inbox. `None`: it was never enqueued, or was trimmed or
    /// forgotten since.
    async fn progress(&self, digest: &EntryDigest) -> Result<Option<Progress>, StoreError>;

    /// Ends the pending attempt, if there is one, with [`Progress::Failed`]. Terminal until the statement is
    /// enqueued again.
    async fn refuse(&self, digest: &EntryDigest, failure: &str) -> Result<(), StoreError>;

    /// Removes at most `limit` finished inbox attempts and returns their number. Of a failed attempt only the
    /// submission is removed: [`progress`](Self::progress) still returns the reason, until the statement is registered by a later
    /// attempt and that one is removed, or until the reason is [forgotten](Self::forget_failures).
    async fn trim_inbox(&self, limit: usize) -> Result<u64, StoreError>;

    /// Forgets the reasons of failed attempts, except the newest `keep`, in the order in which the attempts ended: at most
    /// `limit` of them, the oldest first. Returns their number. A reason stays as long as
    /// [`trim_inbox`](Self::trim_inbox) has not removed its attempt.
    async fn forget_failures(&self, keep: u64, limit: usize) -> Result<u64, StoreError>;

    /// Reads up to `limit` pending inbox items in order of arrival, each with its number. The next page begins
    /// `after` the last number.
    async fn waiting(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, InboxItem)>, StoreError>;
}

/// Bounds of the inbox, in total and per issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxBounds {
    /// Maximum number of items.
    pub rows: u64,
    /// Maximum total size of all submissions, in bytes.
    pub bytes: u64,
    /// Maximum number of items of one issuer.
    pub issuer_rows: u64,
    /// Maximum total size of one issuer's submissions, in bytes.
    pub issuer_bytes: u64,
}

impl InboxBounds {
    /// No bounds.
    pub const NONE: Self =
        Self { rows: u64::MAX, bytes: u64::MAX, issuer_rows: u64::MAX, issuer_bytes: u64::MAX };
}

/// Issuer, time and bounds with which [`Inbox::enqueue_within`] stores an item.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Issuer of the statement; empty if not known.
    pub issuer: &'a str,
    /// Time of arrival in Unix seconds; zero if not known.
    pub at: u64,
    /// Bounds that the inbox must meet with this item in it.
    pub bounds: InboxBounds,
}

impl Arrival<'_> {
    /// Arrival of an item of which nothing is known, without bounds.
    pub const UNKNOWN: Self = Self { issuer: "", at: 0, bounds: InboxBounds::NONE };

    /// Returns the issuer's name for display to an operator: without control characters, and cut after 256 bytes.
    pub fn issuer_name(&self) -> String {
        let mut name = String::new();
        for c in self.issuer.chars().filter(|c| !c.is_control()) {
            if name.len() + c.len_utf8() > ISSUER_BYTES {
                break;
            }
            name.push(c);
        }
        name
    }

    /// Returns a fixed-length key for the issuer: the first half of the SHA-256 digest of its name.
    pub fn issuer_key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key.copy_from_slice(&EntryDigest::of(self.issuer.as_bytes()).as_bytes()[..16]);
        key
    }
}

/// Outcome of [`Inbox::enqueue_within`].
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// The item is durable, or was pending or registered before.
    Kept,
    /// The issuer's share ([`InboxBounds::issuer_rows`], [`InboxBounds::issuer_bytes`]) is used up; the item was
    /// not stored.
    IssuerFull,
    /// The inbox is full ([`InboxBounds::rows`], [`InboxBounds::bytes`]); the item was not stored.
    Full,
}

/// A pending inbox item without its submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingKey {
    /// Number of the item in order of arrival.
    pub number: u64,
    /// Digest of the statement.
    pub digest: EntryDigest,
    /// Name of the issuer, for display ([`Arrival::issuer_name`]).
    pub issuer: String,
    /// Size of the submission in bytes.
    pub bytes: u64,
    /// Time of arrival in Unix seconds; zero if not known.
    pub at: u64,
}

/// Size and age of the pending part of the inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxUse {
    /// Number of pending items.
    pub rows: u64,
    /// Total size of their submissions in bytes.
    pub bytes: u64,
    /// Arrival of the oldest pending item in Unix seconds; `None` if no item has a known time.
    pub oldest: Option<u64>,
}
