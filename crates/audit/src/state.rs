//! Where an audit stands, so that it can go on another time.
//!
//! The state is small: the right edge of the tree, the policy in force, and the books. It is trusted as its file is: who
//! can write it can say that a log was audited.

use merkle::{CompactRange, Hash, TreeSize};
use serde::{Deserialize, Serialize};

use crate::claims::Claims;
use crate::ledger::Ledger;

/// The form of the state that this release writes and reads.
const VERSION: u32 = 2;

/// Where an audit stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    version: u32,
    /// The entry ID of leaf 0: which log it is.
    pub(crate) log: Option<String>,
    /// The next leaf to decide.
    pub(crate) next: u64,
    /// The perfect subtrees left of it.
    edge: Vec<String>,
    pub(crate) policy: Policy,
    pub(crate) history: History,
    pub(crate) ledger: Ledger,
    /// Whether the source keeps the log's indexes; else claims and places are here.
    pub(crate) indexed: bool,
    pub(crate) claims: Claims,
}

/// The policy in force at the next leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    /// There is none before leaf 0.
    #[default]
    None,
    /// It stands at this leaf.
    At { leaf: u64, entry: String },
    /// It stood at this leaf, and cannot be read.
    Lost { leaf: u64 },
}

/// How far the history of heads was compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// The first batch that was not.
    pub(crate) next: u64,
    /// The last one that was.
    pub(crate) last: Option<Passed>,
    /// Whether its root was right.
    pub(crate) agrees: bool,
    /// The newest time that was told with an entry, since the last clock correction.
    pub(crate) told: Option<u64>,
    /// The newest clock correction.
    pub(crate) correction: Option<Correction>,
}

/// A clock correction that is an entry at the index that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Correction {
    pub(crate) size: u64,
    pub(crate) committed_at: u64,
    pub(crate) time: u64,
}

/// A head that the walk has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passed {
    pub(crate) batch: u64,
    pub(crate) size: u64,
    pub(crate) at: u64,
}

/// A state that an audit cannot go on from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadState {
    /// It is no state, or of another release.
    #[error("this is not a state of an audit that this release can go on from: {0}")]
    Unreadable(String),
    /// It is of another log.
    #[error("the state is of the log whose first entry is {state}, and this log's is {log}")]
    AnotherLog {
        /// The state's.
        state: String,
        /// This log's.
        log: String,
    },
    /// It is ahead of the log.
    #[error("the state has audited {state} entries, and the log has {log}")]
    Ahead {
        /// The state's.
        state: u64,
        /// The log's.
        log: u64,
    },
    /// It is of an audit of a database, and this is a service, or the other way round.
    #[error("the state is of an audit from another kind of source: a database, or a service")]
    AnotherSource,
    /// The log has another root at the size that was audited.
    #[error("the log's history has another root at size {size} than the one that was audited")]
    AnotherHistory {
        /// The size.
        size: u64,
    },
    /// The policy in force is not what it was.
    #[error("the policy at leaf {leaf} cannot be read, or is another one than it was")]
    Policy {
        /// Its leaf.
        leaf: u64,
    },
}

impl Default for State {
    fn default() -> Self {
        let history = History { next: 1, last: None, agrees: true, told: None, correction: None };
        Self {
            version: VERSION,
            log: None,
            next: 0,
            edge: Vec::new(),
            policy: Policy::None,
            history,
            ledger: Ledger::default(),
            indexed: true,
            claims: Claims::default(),
        }
    }
}

impl State {
    /// Reads what [`to_json`](Self::to_json) wrote.
    pub fn from_json(text: &str) -> Result<Self, BadState> {
        let state: Self =
            serde_json::from_str(text).map_err(|error| BadState::Unreadable(error.to_string()))?;
        if state.version != VERSION {
            return Err(BadState::Unreadable(format!("version {}", state.version)));
        }
        state.range().map(|_| state)
    }

    /// The state as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// How many entries are audited.
    pub fn audited(&self) -> u64 {
        self.next
    }

    pub(crate) fn range(&self) -> Result<CompactRange, BadState> {
        let unreadable = |why: String| BadState::Unreadable(why);
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
        let mut state = State::default();
        let mut range = CompactRange::empty();
        (0..5u64).for_each(|n| range.append(merkle::EntryDigest::of(&n.to_be_bytes()).leaf_hash()));
        state.set_range(&range);
        assert_eq!(State::from_json(&state.to_json()).unwrap(), state);
        assert_eq!(state.range().unwrap(), range);
        for bad in [
            state.to_json().replace("\"version\":2", "\"version\":1"),
            state.to_json().replace("\"next\":5", "\"next\":7"),
            "{}".to_owned(),
            String::new(),
        ] {
            assert!(matches!(State::from_json(&bad), Err(BadState::Unreadable(_))), "{bad}");
        }
    }
}
