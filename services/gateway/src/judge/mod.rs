//! The semantic tier: a judge that is asked whether a call serves the goal that was declared (VAP, S2 and C5).
//!
//! The judge is a language model, and everything it examines was written by the agent that it judges. So what it is told
//! to do and what it is to look at never share a message, its answer is one of three words, and an answer that did not
//! come, came late or is no answer counts as "not consistent" (section 15): a call is never served because the judge was
//! away. Its words are for the audit store; outside only codes are told (reading V-27).
//!
//! Not here: when to ask (`admission::risk`), and what follows.

mod http;

use admission::decide::{Finding, Question, Semantic};
use admission::decimal::Decimal;
use admission::risk::Degree;
use admission::verdict::Trigger;
use async_trait::async_trait;
use serde::Deserialize;

pub use http::{HttpJudge, JudgeSettings};

/// What the meter `vap.judge` counts: what a question costs, what is reserved for it and where the meter ends are all in this
/// unit (V-31).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Meter {
    /// Answers, each at the price that the operator says.
    #[default]
    Answers,
    /// Tokens, as the endpoint counts them.
    Tokens,
}

impl Meter {
    /// As it is configured.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Meter::Answers => "answers",
            Meter::Tokens => "tokens",
        }
    }
}

/// What a judge thinks.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// The answer.
    pub finding: Finding,
    /// How sure it is; not at all, if it did not say so.
    pub confidence: Degree,
    /// Tokens spent, if the endpoint said how many.
    pub tokens: Option<u64>,
    /// Its words, or why there is no answer. For the operator only.
    pub words: String,
}

/// Whoever can be asked.
#[async_trait]
pub trait Judge: Send + Sync {
    /// Asks. Answers in bounded time, whatever happens.
    async fn ask(&self, question: &Question) -> Opinion;
}

impl Opinion {
    /// No answer, and why.
    #[must_use]
    pub fn none(words: impl Into<String>) -> Self {
        Self { finding: Finding::Unavailable, confidence: Degree::ZERO, tokens: None, words: words.into() }
    }

    /// The finding in a word, for counting.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.finding {
            Finding::Consistent => "consistent",
            Finding::Inconsistent => "inconsistent",
            Finding::Unsure => "unsure",
            Finding::Unavailable => "failed",
        }
    }

    /// What follows for the decision, and what the answer cost: what the operator says that one does, or its tokens, if it is
    /// tokens that the operator counts and the endpoint said how many.
    #[must_use]
    pub fn semantic(&self, trigger: Trigger, meter: Meter, usual: Decimal) -> Semantic {
        let tokens = self.tokens.filter(|_| meter == Meter::Tokens);
        let cost = tokens.map_or(usual, Decimal::from);
        Semantic { finding: self.finding, confidence: self.confidence, trigger, cost }
    }
}
