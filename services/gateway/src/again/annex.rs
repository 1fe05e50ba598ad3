//! What the store keeps in clear beside a record, as far as it is needed to decide again.

use admission::clarify::Answer;
use admission::principal::{Caller, Era, TokenSubject};
use evidence::Stored;
use serde::Deserialize;

use super::AgainError;

/// A text, as far as it was kept.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// All of it.
    Whole(String),
    /// Its beginning: it was too long, or its caller denied too often.
    Beginning {
        /// As much as there is.
        #[serde(rename = "beginning")]
        _text: String,
    },
}

/// A text that is not there, or whole; otherwise it cannot be decided about again.
pub fn whole(text: Option<&Text>) -> Result<Option<&str>, NotWhole> {
    match text {
        None => Ok(None),
        Some(Text::Whole(text)) => Ok(Some(text)),
        Some(Text::Beginning { .. }) => Err(NotWhole),
    }
}

/// Not all of a text was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWhole;

/// What lies beside a record.
#[derive(Debug, Default, Deserialize)]
pub struct Annex {
    /// The arguments, in the bytes that were committed to.
    #[serde(default)]
    pub arguments: Option<Text>,
    /// How the message came.
    #[serde(default)]
    pub replay: Option<Came>,
    /// Of an outcome: the decision.
    #[serde(default)]
    pub decision: Option<String>,
    /// Of an outcome: the cost that the tool declared, as it was written.
    #[serde(default)]
    pub cost: Option<Text>,
    /// Of an outcome: the tool.
    #[serde(default)]
    pub tool: Option<Text>,
}

/// How a message came.
#[derive(Debug, Deserialize)]
pub struct Came {
    /// On which route.
    pub route: String,
    caller: Who,
    /// Its text; none if it could not be read, or there was none.
    #[serde(default)]
    pub message: Option<Text>,
    /// The tool that was called.
    #[serde(default)]
    pub tool: Option<Text>,
    /// `Mcp-Name`.
    #[serde(default)]
    pub header: Option<Text>,
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
    #[serde(default)]
    is_given: bool,
}

impl Annex {
    /// Of a record.
    pub fn of(stored: &Stored) -> Result<Self, AgainError> {
        jose::json::read_bytes(&stored.record.annex)
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
            is_given: self.caller.is_given,
            route: self.route.clone(),
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
