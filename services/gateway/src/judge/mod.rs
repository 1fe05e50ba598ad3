//! The semantic tier: a judge assesses whether a call serves the declared goal (VAP, S2 and C5).
//!
//! The judge is a language model, and everything it examines was written by the agent that it judges. So its
//! instructions and the data never share a message, its answer is one of three words, and a missing, late or malformed
//! answer counts as "not consistent" (section 15): a call is never served because the judge was unavailable. The
//! judge's wording goes to the audit store; callers get only codes (reading V-27).
//!
//! Not here: when to ask (`admission::risk`), and the effect of the answer (`admission::decide`).

mod http;

use admission::decide::{JudgeAnswer, JudgeFinding, JudgeQuestion};
use admission::risk::Degree;
use async_trait::async_trait;
use decimal::Decimal;
use serde::Deserialize;
use vap::verdict::Trigger;

pub use http::{HttpJudge, JudgeSettings};

/// The unit of the meter `vap.judge`, in which the cost of a question, its reservation and the meter's limit are given
/// (V-31).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Meter {
    /// Answers, each at the operator's price.
    #[default]
    Answers,
    /// Tokens, as the endpoint counts them.
    Tokens,
}

impl Meter {
    /// Returns the name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Meter::Answers => "answers",
            Meter::Tokens => "tokens",
        }
    }
}

/// A judge's opinion.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// The finding; [`JudgeFinding::Unavailable`] if there is no answer.
    pub finding: JudgeFinding,
    /// The judge's confidence; zero if it stated none.
    pub confidence: Degree,
    /// Number of tokens spent, if the endpoint stated it.
    pub tokens: Option<u64>,
    /// The judge's wording, or the reason why there is no answer. For the operator only.
    pub words: String,
}

/// A judge that the gateway can ask, such as [`HttpJudge`].
#[async_trait]
pub trait Judge: Send + Sync {
    /// Asks a question. Returns in bounded time in every case; a failure is an [`Opinion::none`].
    async fn ask(&self, question: &JudgeQuestion) -> Opinion;
}

impl Opinion {
    /// The opinion [`JudgeFinding::Unavailable`], with the reason in words.
    #[must_use]
    pub fn none(words: impl Into<String>) -> Self {
        Self {
            finding: JudgeFinding::Unavailable,
            confidence: Degree::ZERO,
            tokens: None,
            words: words.into(),
        }
    }

    /// Returns the finding as a word, for the metrics.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.finding {
            JudgeFinding::Consistent => "consistent",
            JudgeFinding::Inconsistent => "inconsistent",
            JudgeFinding::Unsure => "unsure",
            JudgeFinding::Unavailable => "failed",
        }
    }

    /// Returns the judge's conclusion for the decision. Its cost is the number of tokens if `meter` counts them and the
    /// endpoint stated it, and `usual` otherwise.
    #[must_use]
    pub fn semantic(&self, trigger: Trigger, meter: Meter, usual: Decimal) -> JudgeAnswer {
        let tokens = self.tokens.filter(|_| meter == Meter::Tokens);
        let cost = tokens.map_or(usual, Decimal::from);
        JudgeAnswer { finding: self.finding, confidence: self.confidence, trigger, cost }
    }
}
