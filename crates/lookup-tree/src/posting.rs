//! Keys of terms, and postings: a key and the leaf of an entry that has the term.

use std::fmt;

use merkle::LeafIndex;
use sha2::{Digest, Sha256};

/// Length in bytes of an encoded posting.
pub const POSTING_BYTES: usize = 24;

/// Prefix of the hashed term, so that no other hash of the log equals a key.
const TERM_LABEL: &[u8] = b"tabellion/term/1";

/// The key of a term: the first 16 bytes of the hash of kind and value.
///
/// A collision of two terms adds an entry to an answer, which its reader notices; it never hides one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermKey([u8; 16]);

impl TermKey {
    /// Hashes a term: a kind of search value, and the value at its full length.
    pub fn of(kind: u8, value: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(TERM_LABEL);
        hasher.update([kind]);
        hasher.update(value);
        let digest: [u8; 32] = hasher.finalize().into();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Self(key)
    }

    /// Wraps 16 bytes without hashing.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for TermKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TermKey({self})")
    }
}

/// Writes lowercase hexadecimal digits.
impl fmt::Display for TermKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Why an entry is listed as blind: it may have any term, so every answer about its leaf lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum BlindCode {
    /// The entry was erased. It has no other posting.
    Erased = 1,
    /// The statement is malformed, or the log does not serve its payload.
    Unreadable = 2,
    /// The entry has more terms than [`MAX_TERMS`](crate::limits::MAX_TERMS).
    TooManyTerms = 3,
}

impl BlindCode {
    /// All codes, in the order of their keys.
    pub const ALL: [BlindCode; 3] = [BlindCode::Erased, BlindCode::Unreadable, BlindCode::TooManyTerms];

    /// The key of blind postings with this code: 15 zero bytes and the code.
    pub const fn key(self) -> TermKey {
        let mut key = [0; 16];
        key[15] = self as u8;
        TermKey(key)
    }

    /// Returns the code whose key this is; `None` for the key of a term.
    pub fn of_key(key: TermKey) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.key() == key)
    }
}

/// A key and a leaf. Postings are ordered by their 24 bytes: by key, then by leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Posting {
    /// Key of a term of the entry, or of a [`BlindCode`].
    pub key: TermKey,
    /// Leaf of the entry.
    pub leaf: LeafIndex,
}

impl Posting {
    /// The smallest posting.
    pub const FIRST: Self = Self { key: TermKey([0; 16]), leaf: LeafIndex::new(0) };
    /// The greatest posting.
    pub const LAST: Self = Self { key: TermKey([0xff; 16]), leaf: LeafIndex::new(u64::MAX) };

    /// The posting that follows; [`LAST`](Self::LAST) follows itself.
    pub fn successor(self) -> Self {
        match self.leaf.get().checked_add(1) {
            Some(leaf) => Self { leaf: LeafIndex::new(leaf), ..self },
            None => match u128::from_be_bytes(self.key.0).checked_add(1) {
                Some(key) => Self { key: TermKey(key.to_be_bytes()), leaf: LeafIndex::new(0) },
                None => Self::LAST,
            },
        }
    }

    /// Creates the posting of an entry that may have any term.
    pub const fn blind(code: BlindCode, leaf: LeafIndex) -> Self {
        Self { key: code.key(), leaf }
    }

    /// Returns the code of a blind posting; `None` for the posting of a term.
    pub fn blind_code(&self) -> Option<BlindCode> {
        BlindCode::of_key(self.key)
    }

    /// Returns the 24 bytes: the key, then the leaf with its most significant byte first.
    pub fn to_bytes(self) -> [u8; POSTING_BYTES] {
        let mut bytes = [0; POSTING_BYTES];
        bytes[..16].copy_from_slice(&self.key.0);
        bytes[16..].copy_from_slice(&self.leaf.get().to_be_bytes());
        bytes
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8; POSTING_BYTES]) -> Self {
        let (mut key, mut leaf) = ([0; 16], [0; 8]);
        key.copy_from_slice(&bytes[..16]);
        leaf.copy_from_slice(&bytes[16..]);
        Self { key: TermKey(key), leaf: LeafIndex::new(u64::from_be_bytes(leaf)) }
    }
}

/// Error: a posting does not come after the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("posting {} at leaf {} does not come after {} at leaf {}", after.key, after.leaf, before.key, before.leaf)]
pub struct OutOfOrder {
    /// The posting before.
    pub before: Posting,
    /// The posting that is out of order, or the same again.
    pub after: Posting,
}

impl OutOfOrder {
    /// Checks that `after` comes after `before`.
    pub(crate) fn check(before: Option<Posting>, after: Posting) -> Result<(), Self> {
        match before {
            Some(before) if before >= after => Err(Self { before, after }),
            _ => Ok(()),
        }
    }

    /// Checks that postings ascend, each present once.
    pub(crate) fn check_all(postings: &[Posting]) -> Result<(), Self> {
        match postings.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(Self { before: pair[0], after: pair[1] }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_are_ordered_as_their_bytes_are() {
        let posting = |key: u8, leaf| Posting { key: TermKey([key; 16]), leaf: LeafIndex::new(leaf) };
        let ordered = [posting(0, 256), posting(1, 0), posting(1, 255), posting(1, 256), posting(255, 1)];
        for pair in ordered.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].to_bytes() < pair[1].to_bytes());
            assert_eq!(Posting::from_bytes(&pair[0].to_bytes()), pair[0]);
        }
    }

    #[test]
    fn blind_keys_come_before_all_others_but_one() {
        for code in BlindCode::ALL {
            assert_eq!(BlindCode::of_key(code.key()), Some(code));
        }
        assert_eq!(BlindCode::of_key(TermKey([0; 16])), None);
        assert_eq!(BlindCode::of_key(TermKey::of(3, b"")), None);
    }
}
