//! COSE_KeySet (RFC 9052, section 7): the keys that a service publishes.
//!
//! A member that is not usable (another key type, or malformed) is skipped and reported, and is not an error. A service can
//! therefore introduce keys that older readers do not know.

use crate::cbor::{self, ItemReader, Major};
use crate::key::{CoseKey, KeyError, kid_of, write_set};
use crate::limits::{HEADER_DEPTH, KEY_SET_BYTES, KEY_SET_ITEMS, KEY_SET_MEMBERS};

/// The usable keys of a COSE_KeySet, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<CoseKey>,
    skipped: Vec<SkippedKey>,
}

/// A member of a COSE_KeySet that is not usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedKey {
    /// Position in the array.
    pub position: usize,
    /// Key identifier, if the member is a map that has one.
    pub kid: Option<Vec<u8>>,
    /// Reason why it is not usable.
    pub error: KeyError,
}

impl SkippedKey {
    /// Returns `true` if the member may be a key, of a type or curve that this crate does not support.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.error, KeyError::Unsupported(_))
    }
}

impl KeySet {
    /// Creates a set of these keys.
    pub fn new(keys: Vec<CoseKey>) -> Self {
        Self { keys, skipped: Vec::new() }
    }

    /// Parses a COSE_KeySet that fills `bytes`.
    ///
    /// # Errors
    /// Returns [`KeyError::Malformed`] if it is not a well-formed CBOR array, or exceeds [`KEY_SET_BYTES`],
    /// [`KEY_SET_ITEMS`] or [`KEY_SET_MEMBERS`]. An unusable member is not an error.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyError> {
        let mut set = Self::default();
        for (position, member) in members(bytes)?.into_iter().enumerate() {
            match CoseKey::parse(member) {
                Ok(key) => set.keys.push(key),
                Err(error) => set.skipped.push(SkippedKey { position, kid: kid_of(member), error }),
            }
        }
        Ok(set)
    }

    /// Returns the usable keys.
    pub fn keys(&self) -> &[CoseKey] {
        &self.keys
    }

    /// Returns the skipped members, in order.
    pub fn skipped(&self) -> &[SkippedKey] {
        &self.skipped
    }

    /// Returns the keys with this `kid`; several keys may share one.
    pub fn with_kid<'s>(&'s self, kid: &'s [u8]) -> impl Iterator<Item = &'s CoseKey> {
        self.keys.iter().filter(move |key| key.kid.as_deref() == Some(kid))
    }

    /// Returns the deterministic encoding of the usable keys.
    pub fn encode(&self) -> Vec<u8> {
        write_set(self.keys.iter())
    }
}

/// Returns the bytes of each member of the array that fills `bytes`.
fn members(bytes: &[u8]) -> Result<Vec<&[u8]>, KeyError> {
    if bytes.len() > KEY_SET_BYTES {
        return Err(malformed("too large"));
    }
    let mut reader = ItemReader::new(bytes, cbor::Limits { depth: HEADER_DEPTH, items: KEY_SET_ITEMS });
    let head = reader.head().map_err(malformed)?;
    if head.major != Major::Array {
        return Err(malformed("a COSE_KeySet is an array"));
    }
    let mut members = Vec::new();
    let mut left = head.argument;
    while reader.more(&head, &mut left) {
        if members.len() == KEY_SET_MEMBERS {
            return Err(malformed(format!("over {KEY_SET_MEMBERS} keys")));
        }
        members.push(reader.skip().map_err(malformed)?);
    }
    reader.finish().map_err(malformed)?;
    Ok(members)
}

fn malformed(why: impl ToString) -> KeyError {
    KeyError::Malformed(why.to_string())
}
