//! Cache of the judge's verdicts (reading V-29).
//!
//! The agent chooses its plan digest, and two calls of the same form can differ as much as a scratch file and a
//! password file. So a verdict is stored under the exact commitment in force, tool, arguments and rules. Only the
//! verdict "consistent" is stored, and never for a tool that moves money, deletes or grants access. Entries expire, and
//! an amendment clears the cache.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::CACHED_VERDICTS;
use vap::message::Sensitivity;

/// The cache key of a verdict: a SHA-256 hash as four 64-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VerdictKey([u64; 4]);

impl VerdictKey {
    /// Computes the key of a call from the digest of the commitment in force, the tool, the canonical arguments and the
    /// digest of the rules.
    #[must_use]
    pub fn of(commitment: &str, tool: &str, arguments: &[u8], policy: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [commitment.as_bytes(), tool.as_bytes(), arguments, policy.as_bytes()] {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(digest.finalize().chunks_exact(8)) {
            *word = bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        }
        VerdictKey(words)
    }
}

/// Returns `true` if a verdict about a call of this sensitivity may be cached.
#[must_use]
pub const fn is_cacheable(sensitivity: Option<Sensitivity>) -> bool {
    match sensitivity {
        Some(Sensitivity::WritesMoney | Sensitivity::Deletes | Sensitivity::GrantsAccess) => false,
        None | Some(Sensitivity::Reads | Sensitivity::WritesData | Sensitivity::SendsExternal) => true,
    }
}

/// The cached "consistent" verdicts of one session, newest last, at most [`CACHED_VERDICTS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verdicts(Vec<(VerdictKey, i64)>);

impl Verdicts {
    /// Returns the expiry of a cached verdict in Unix seconds, or `None` if there is none or it has expired.
    #[must_use]
    pub fn until(&self, key: VerdictKey, now: Timestamp) -> Option<i64> {
        self.0.iter().find(|(kept, until)| *kept == key && now.as_second() < *until).map(|(_, until)| *until)
    }

    /// Stores a verdict, and removes expired entries and, if the cache is full, the oldest one.
    pub fn keep(&mut self, key: VerdictKey, until: i64, now: Timestamp) {
        self.0.retain(|(kept, until)| *kept != key && now.as_second() < *until);
        if self.0.len() >= CACHED_VERDICTS {
            self.0.remove(0);
        }
        self.0.push((key, until));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
