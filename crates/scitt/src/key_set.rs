//! COSE_KeySet (RFC 9052, section 7): the keys that a service publishes.
//!
//! A member that is not usable (another key type, or malformed) is skipped and reported, and is not an error. A service can
//! therefore introduce keys that older readers do not know.

use crate::cbor::Value;
use crate::key::{CoseKey, KeyError, parse_limited, write_set};
use crate::limits::KEY_SET_MEMBERS;

/// The usable keys of a COSE_KeySet, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<CoseKey>,
    skipped: Vec<(usize, KeyError)>,
}

impl KeySet {
    /// Creates a set of these keys.
    pub fn new(keys: Vec<CoseKey>) -> Self {
        Self { keys, skipped: Vec::new() }
    }

    /// Parses a COSE_KeySet that fills `bytes`.
    ///
    /// # Errors
    /// Returns [`KeyError::Malformed`] if it is not a CBOR array, or exceeds
    /// [`KEY_SET_BYTES`](crate::limits::KEY_SET_BYTES) or [`KEY_SET_MEMBERS`]. An unusable member is not an error.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyError> {
        let value = parse_limited(bytes)?;
        let Value::Array(members) = &value else {
            return Err(KeyError::Malformed("a COSE_KeySet is an array".into()));
        };
        if members.len() > KEY_SET_MEMBERS {
            return Err(KeyError::Malformed(format!("over {KEY_SET_MEMBERS} keys")));
        }
        let mut set = Self::default();
        for (position, member) in members.iter().enumerate() {
            match CoseKey::from_value(&member.value) {
                Ok(key) => set.keys.push(key),
                Err(why) => set.skipped.push((position, why)),
            }
        }
        Ok(set)
    }

    /// Returns the usable keys.
    pub fn keys(&self) -> &[CoseKey] {
        &self.keys
    }

    /// Returns the skipped members: the position in the array, and the reason.
    pub fn skipped(&self) -> &[(usize, KeyError)] {
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
