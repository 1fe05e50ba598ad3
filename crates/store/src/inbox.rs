//! Values with which the inbox is bounded, listed and measured.

use merkle::EntryDigest;

/// Maximum length of a stored issuer name, in bytes; names are stored for display only.
const ISSUER_BYTES: usize = 256;

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

/// Issuer, time and bounds with which [`LogStore::enqueue_within`](crate::LogStore::enqueue_within) stores an item.
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

/// Outcome of [`LogStore::enqueue_within`](crate::LogStore::enqueue_within).
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
