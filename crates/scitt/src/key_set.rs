//! COSE_KeySet (RFC 9052 section 7): the keys a service serves, and the keys a reader can use of them.
//!
//! A member we cannot use (another key type, a broken one) is skipped and reported, never fatal:
//! that is how a service introduces keys that older readers do not know.

use crate::cbor::Value;
use crate::key::{CoseKey, KeyError, parse_limited, write_set};
use crate::limits::KEY_SET_MEMBERS;

/// The usable keys of a set, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<CoseKey>,
    skipped: Vec<(usize, KeyError)>,
}

impl KeySet {
    /// A set of these keys.
    pub fn new(keys: Vec<CoseKey>) -> Self {
        Self { keys, skipped: Vec::new() }
    }

    /// Reads a COSE_KeySet that fills `bytes`.
    ///
    /// # Errors
    /// If it is not a CBOR array, or beyond the limits; members alone never make it fail.
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

    /// The usable keys.
    pub fn keys(&self) -> &[CoseKey] {
        &self.keys
    }

    /// The members passed over: their place in the array and why.
    pub fn skipped(&self) -> &[(usize, KeyError)] {
        &self.skipped
    }

    /// The keys with this kid: several may share it.
    pub fn with_kid<'s>(&'s self, kid: &'s [u8]) -> impl Iterator<Item = &'s CoseKey> {
        self.keys.iter().filter(move |key| key.kid.as_deref() == Some(kid))
    }

    /// The deterministic encoding of the usable keys.
    pub fn encode(&self) -> Vec<u8> {
        write_set(self.keys.iter())
    }
}
