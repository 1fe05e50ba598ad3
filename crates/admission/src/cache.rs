//! Verdicts of the judge that may be used again (reading V-29).
//!
//! The agent chooses its plan digest, and two calls of one shape can be as different as a scratch file and a password file. So
//! a verdict is found under the commitment in force, the tool, the arguments and the rules, all of them exact; only "consistent"
//! is kept, never for a tool that moves money, deletes or grants; it expires, and an amendment clears them all.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::CACHED_VERDICTS;
use crate::message::Sensitivity;

/// What a verdict is found under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VerdictKey([u64; 4]);

impl VerdictKey {
    /// The key of a call: digest of the commitment in force, tool, digest of the arguments, digest of the rules.
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

/// Whether a verdict about a call of this sensitivity may be used again.
#[must_use]
pub const fn is_cacheable(sensitivity: Option<Sensitivity>) -> bool {
    match sensitivity {
        Some(Sensitivity::WritesMoney | Sensitivity::Deletes | Sensitivity::GrantsAccess) => false,
        None | Some(Sensitivity::Reads | Sensitivity::WritesData | Sensitivity::SendsExternal) => true,
    }
}

/// What the judge found consistent in one session, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verdicts(Vec<(VerdictKey, i64)>);

impl Verdicts {
    /// Until when, in Unix seconds, the call is known to be consistent.
    #[must_use]
    pub fn until(&self, key: VerdictKey, now: Timestamp) -> Option<i64> {
        self.0.iter().find(|(kept, until)| *kept == key && now.as_second() < *until).map(|(_, until)| *until)
    }

    /// Keeps a verdict, and lets go of those that expired and of the oldest.
    pub fn keep(&mut self, key: VerdictKey, until: i64, now: Timestamp) {
        self.0.retain(|(kept, until)| *kept != key && now.as_second() < *until);
        if self.0.len() >= CACHED_VERDICTS {
            self.0.remove(0);
        }
        self.0.push((key, until));
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
