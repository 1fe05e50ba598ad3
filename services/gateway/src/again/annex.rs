//! What the store keeps in clear beside a record, as far as it is needed to decide again.

use evidence::Stored;
use serde::Deserialize;
use serde_json::Value;

use super::AgainError;
use crate::decision_inputs::{DecisionInputs, Text};

/// What lies beside a record.
#[derive(Debug, Default, Deserialize)]
pub struct Annex {
    /// The arguments, in the bytes that were committed to.
    #[serde(default)]
    pub arguments: Option<Text>,
    /// Of a decision: what it was made from.
    #[serde(default)]
    replay: Option<Value>,
    /// Of an outcome: the decision.
    #[serde(default)]
    pub decision: Option<String>,
    /// Of an outcome: the cost that the tool declared, as it was written.
    #[serde(default)]
    pub cost: Option<Text>,
    /// The tool.
    #[serde(default)]
    pub tool: Option<Text>,
}

impl Annex {
    /// Of a record.
    pub fn of(stored: &Stored) -> Result<Self, AgainError> {
        jose::json::read_bytes(&stored.record.annex)
            .map_err(|error| AgainError::Record { seq: stored.record.seq, why: error.to_string() })
    }

    /// What the decision was made from; none if that was not kept whole.
    pub fn inputs(&self) -> Option<DecisionInputs> {
        serde_json::from_value(self.replay.clone()?).ok()
    }

    /// Whether a call that was served was denied afterwards: the log gave no receipt for the decision.
    pub fn is_denied_afterwards(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.get("instead_of").is_some())
    }
}
