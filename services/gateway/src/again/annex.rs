//! The annex of a record, as far as replaying the decision needs it.

use evidence::Stored;
use serde::Deserialize;
use serde_json::Value;

use super::AgainError;
use crate::decision_inputs::{DecisionInputs, Text};

/// The part of a record's annex that is read.
#[derive(Debug, Default, Deserialize)]
pub struct Annex {
    /// The arguments, in the bytes that the record commits to.
    #[serde(default)]
    pub arguments: Option<Text>,
    /// For a decision: its [`DecisionInputs`].
    #[serde(default)]
    replay: Option<Value>,
    /// For an outcome: the entry ID of the decision.
    #[serde(default)]
    pub decision: Option<String>,
    /// For an outcome: the cost that the tool declared, as written.
    #[serde(default)]
    pub cost: Option<Text>,
    /// The tool's name.
    #[serde(default)]
    pub tool: Option<Text>,
}

impl Annex {
    /// Parses the annex of a record.
    pub fn of(stored: &Stored) -> Result<Self, AgainError> {
        jose::json::read_bytes(&stored.record.annex)
            .map_err(|error| AgainError::Record { seq: stored.record.seq, why: error.to_string() })
    }

    /// Returns the inputs of the decision; `None` if they cannot be read.
    pub fn inputs(&self) -> Option<DecisionInputs> {
        serde_json::from_value(self.replay.clone()?).ok()
    }

    /// Returns whether this is the denial of a call after its admission: the log issued no receipt for the decision.
    pub fn is_denied_afterwards(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.get("instead_of").is_some())
    }
}
