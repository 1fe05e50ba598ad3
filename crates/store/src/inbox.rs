//! The values with which the inbox is bounded, listed and measured.

use merkle::EntryDigest;

/// Bytes of an issuer's name that the inbox keeps for display.
const ISSUER_BYTES: usize = 256;

/// How much the inbox may hold, in total and of one issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxBounds {
    /// Items in total.
    pub rows: u64,
    /// Bytes of all submissions.
    pub bytes: u64,
    /// Items of one issuer.
    pub issuer_rows: u64,
    /// Bytes of one issuer's submissions.
    pub issuer_bytes: u64,
}

impl InboxBounds {
    /// No bounds.
    pub const NONE: Self =
        Self { rows: u64::MAX, bytes: u64::MAX, issuer_rows: u64::MAX, issuer_bytes: u64::MAX };
}

/// Who hands in an item, when, and within which bounds.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The statement's issuer; empty if not known.
    pub issuer: &'a str,
    /// Unix seconds; zero if not known.
    pub at: u64,
    /// What the inbox may hold with this item in it.
    pub bounds: InboxBounds,
}

impl Arrival<'_> {
    /// The arrival of an item of which nothing is known, without bounds.
    pub const UNKNOWN: Self = Self { issuer: "", at: 0, bounds: InboxBounds::NONE };

    /// The issuer's name as an operator may be shown it: without control characters, and cut after 256 bytes.
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

    /// The issuer's name at a fixed length: the first half of its SHA-256 digest.
    pub fn issuer_key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key.copy_from_slice(&EntryDigest::of(self.issuer.as_bytes()).as_bytes()[..16]);
        key
    }
}

/// The outcome of handing an item to the inbox.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// The item is durable, or was known before.
    Kept,
    /// Not kept: the issuer has used up its share.
    IssuerFull,
    /// Not kept: the inbox is full.
    Full,
}

/// A pending inbox item without its submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingKey {
    /// The item's number in order of arrival.
    pub number: u64,
    /// The statement's digest.
    pub digest: EntryDigest,
    /// The issuer's name, for display ([`Arrival::issuer_name`]).
    pub issuer: String,
    /// Bytes of the submission.
    pub bytes: u64,
    /// When it arrived, in Unix seconds; zero if not known.
    pub at: u64,
}

/// How much of the inbox is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxUse {
    /// Items.
    pub rows: u64,
    /// Bytes of their submissions.
    pub bytes: u64,
    /// When the oldest of them arrived, in Unix seconds; `None` if that is not known of any.
    pub oldest: Option<u64>,
}
