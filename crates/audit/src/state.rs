//! State of an audit, from which a later audit can continue.
//!
//! The state is small: the right edge of the tree, the policy in force, counters and findings. That of an audit from
//! outside also has every entry ID and claim, and is bounded by [`MAX_AUDIT_STATE_BYTES`]. A state is as trustworthy as
//! the file that holds it: a person who can write the file can make a log appear audited.

use merkle::{CompactRange, Hash, TreeSize};
use serde::{Deserialize, Serialize};

use crate::claims::ClaimIndex;
use crate::ledger::AuditLedger;
use crate::limits::MAX_AUDIT_STATE_BYTES;

/// Version of the JSON form that this release writes and reads.
const VERSION: u32 = 1;

/// Resumable state of an audit, stored as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditState {
    version: u32,
    /// Entry ID of leaf 0, which identifies the log.
    pub(crate) log: Option<String>,
    /// Index of the next leaf to decide.
    pub(crate) next: u64,
    /// Hashes of the perfect subtrees to the left of `next`, in hexadecimal.
    edge: Vec<String>,
    pub(crate) policy: PolicyState,
    pub(crate) history: HistoryState,
    pub(crate) ledger: AuditLedger,
    /// `true` if the source keeps the log's indexes; otherwise `claims` holds claims and positions.
    pub(crate) indexed: bool,
    pub(crate) claims: ClaimIndex,
}

/// The policy in force at the next leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyState {
    /// No policy, before leaf 0.
    #[default]
    None,
    /// The policy is the entry at this leaf.
    At { leaf: u64, entry: String },
    /// The policy entry at this leaf cannot be read.
    Lost { leaf: u64 },
}

/// Position in the history of heads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HistoryState {
    /// First batch number that was not compared.
    pub(crate) next: u64,
    /// Last head that was compared, by [`HeadHistory::pass`](crate::history::HeadHistory::pass).
    pub(crate) last: Option<Passed>,
    /// `true` if the root of the last head was right.
    pub(crate) agrees: bool,
    /// Newest commit time that the source gave with an entry, since the last clock correction.
    #[serde(rename = "told")]
    pub(crate) unsigned_time: Option<u64>,
    /// Newest clock correction.
    pub(crate) correction: Option<Correction>,
}

/// A [`ClockCorrection`](registration::clock_correction::ClockCorrection) that stands at the index that it names. Times
/// are Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Correction {
    pub(crate) size: u64,
    pub(crate) committed_at: u64,
    pub(crate) time: u64,
}

/// A head that the audit has passed, with its commit time in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passed {
    pub(crate) batch: u64,
    pub(crate) size: u64,
    pub(crate) at: u64,
}

/// Error for a state from which an audit cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditStateError {
    /// The text is not a state, or has another version than this release writes.
    #[error("this is not the state of an audit that this release can continue: {0}")]
    Unreadable(String),
    /// The state belongs to another log.
    #[error("the state belongs to another log: its first entry is {state}, and this log's is {log}")]
    AnotherLog {
        /// Entry ID of leaf 0 in the state.
        state: String,
        /// Entry ID of leaf 0 of this log.
        log: String,
    },
    /// The state has audited more entries than the log has.
    #[error("the state has audited {state} entries, and the log has {log}")]
    Ahead {
        /// Number of entries audited.
        state: u64,
        /// Size of the log's tree.
        log: u64,
    },
    /// The state comes from an audit of a database and this source is a service, or vice versa.
    #[error("the state is of an audit from another kind of source: a database, or a service")]
    AnotherSource,
    /// The log has another root at the audited size.
    #[error("the log's history has another root at size {size} than the one that was audited")]
    AnotherHistory {
        /// Tree size that was audited.
        size: u64,
    },
    /// The state is longer than a state that is read may be.
    #[error("the state after {entries} entries has {bytes} bytes, and at most {most} bytes are kept")]
    TooLong {
        /// Number of entries audited.
        entries: u64,
        /// Length as JSON.
        bytes: u64,
        /// Maximum length.
        most: u64,
    },
    /// The policy entry in force cannot be read or has changed.
    #[error("the policy at leaf {leaf} cannot be read, or is another one than it was")]
    Policy {
        /// Leaf of the policy entry.
        leaf: u64,
    },
}

impl Default for AuditState {
    fn default() -> Self {
        let history =
            HistoryState { next: 1, last: None, agrees: true, unsigned_time: None, correction: None };
        Self {
            version: VERSION,
            log: None,
            next: 0,
            edge: Vec::new(),
            policy: PolicyState::None,
            history,
            ledger: AuditLedger::default(),
            indexed: true,
            claims: ClaimIndex::default(),
        }
    }
}

impl AuditState {
    /// Parses a state from JSON, as [`to_json`](Self::to_json) writes it.
    ///
    /// # Errors
    /// Returns [`AuditStateError::Unreadable`] if the text is not a state of this version.
    pub fn from_json(text: &str) -> Result<Self, AuditStateError> {
        let state: Self =
            serde_json::from_str(text).map_err(|error| AuditStateError::Unreadable(error.to_string()))?;
        if state.version != VERSION {
            return Err(AuditStateError::Unreadable(format!("version {}", state.version)));
        }
        state.range().map(|_| state)
    }

    /// Serializes the state as JSON.
    ///
    /// # Errors
    /// Returns [`AuditStateError::TooLong`] beyond [`MAX_AUDIT_STATE_BYTES`]: readers accept no longer state.
    pub fn to_json(&self) -> Result<String, AuditStateError> {
        self.to_json_within(MAX_AUDIT_STATE_BYTES)
    }

    fn to_json_within(&self, most: u64) -> Result<String, AuditStateError> {
        let unwritable = |error: serde_json::Error| AuditStateError::Unreadable(error.to_string());
        let json = serde_json::to_string(self).map_err(unwritable)?;
        let bytes = json.len() as u64;
        match bytes <= most {
            true => Ok(json),
            false => Err(AuditStateError::TooLong { entries: self.next, bytes, most }),
        }
    }

    /// Returns the number of entries audited.
    pub fn audited(&self) -> u64 {
        self.next
    }

    pub(crate) fn range(&self) -> Result<CompactRange, AuditStateError> {
        let unreadable = |why: String| AuditStateError::Unreadable(why);
        let hashes = self.edge.iter().map(|hash| hash.parse::<Hash>()).collect::<Result<Vec<_>, _>>();
        let hashes = hashes.map_err(|error| unreadable(error.to_string()))?;
        CompactRange::from_parts(TreeSize::new(self.next), hashes)
            .map_err(|error| unreadable(error.to_string()))
    }

    pub(crate) fn set_range(&mut self, range: &CompactRange) {
        self.next = range.size().get();
        self.edge = range.hashes().iter().map(Hash::to_string).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_nothing_else_is() {
        let mut state = AuditState::default();
        let mut range = CompactRange::empty();
        (0..5u64).for_each(|n| range.append(merkle::EntryDigest::of(&n.to_be_bytes()).leaf_hash()));
        state.set_range(&range);
        let json = state.to_json().unwrap();
        assert_eq!(AuditState::from_json(&json).unwrap(), state);
        assert_eq!(state.range().unwrap(), range);
        for bad in [
            json.replace("\"version\":1", "\"version\":2"),
            json.replace("\"next\":5", "\"next\":7"),
            "{}".to_owned(),
            String::new(),
        ] {
            assert!(matches!(AuditState::from_json(&bad), Err(AuditStateError::Unreadable(_))), "{bad}");
        }
    }

    #[test]
    fn a_state_is_never_written_longer_than_it_is_read() {
        let state = AuditState::default();
        let bytes = state.to_json().unwrap().len() as u64;
        assert!(state.to_json_within(bytes).is_ok());
        let too_long = AuditStateError::TooLong { entries: 0, bytes, most: bytes - 1 };
        assert_eq!(state.to_json_within(bytes - 1), Err(too_long));
    }
}
