//! What the store keeps in clear beside a record, as far as it is needed to decide again.

use admission::clarify::Answer;
use admission::principal::{Caller, Era, TokenSubject};
use evidence::Stored;
use serde::Deserialize;

use super::AgainError;

/// What lies beside a record.
#[derive(Debug, Default, Deserialize)]
pub struct Annex {
    /// The arguments, in the bytes that were committed to.
    #[serde(default)]
    pub arguments: Option<String>,
    /// How the message came.
    #[serde(default)]
    pub replay: Option<Came>,
    /// Of an outcome: the decision.
    #[serde(default)]
    pub decision: Option<String>,
    /// Of an outcome: the cost that the tool declared, as it was written.
    #[serde(default)]
    pub cost: Option<String>,
    /// Of an outcome: the tool.
    #[serde(default)]
    pub tool: Option<String>,
}

/// How a message came.
#[derive(Debug, Deserialize)]
pub struct Came {
    /// On which route.
    pub route: String,
    caller: Who,
    /// Its text; none if it could not be read, or there was none.
    #[serde(default)]
    pub message: Option<String>,
    /// The tool that was called.
    #[serde(default)]
    pub tool: Option<String>,
    /// `Mcp-Name`.
    #[serde(default)]
    pub header: Option<String>,
    /// Chance.
    #[serde(default)]
    pub sample: u32,
    #[serde(default)]
    answer: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Who {
    era: Era,
    token: Option<TokenSubject>,
    certificate: Option<String>,
    mcp_session: Option<String>,
}

impl Annex {
    /// Of a record.
    pub fn of(stored: &Stored) -> Result<Self, AgainError> {
        serde_json::from_slice(&stored.record.annex)
            .map_err(|error| AgainError::Record { seq: stored.record.seq, why: error.to_string() })
    }
}

impl Came {
    /// Who called.
    pub fn caller(&self) -> Caller {
        Caller {
            era: self.caller.era,
            token: self.caller.token.clone(),
            certificate: self.caller.certificate.clone(),
            mcp_session: self.caller.mcp_session.clone(),
        }
    }

    /// What a person said.
    pub fn answer(&self) -> Option<Answer> {
        match self.answer.as_deref()? {
            "confirmed" => Some(Answer::Confirmed),
            "declined" => Some(Answer::Declined),
            _ => Some(Answer::Unanswered),
        }
    }
}
