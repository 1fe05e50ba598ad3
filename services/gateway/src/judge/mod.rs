//! The semantic tier: a judge that is asked whether a call serves the goal that was declared (VAP, S2 and C5).
//!
//! The judge is a language model, and everything it examines was written by the agent that it judges. So what it is told
//! to do and what it is to look at never share a message, its answer is one of three words, and an answer that did not
//! come, came late or is no answer counts as "not consistent" (section 15): a call is never served because the judge was
//! away. Its words are for the audit store; outside only codes are told (reading V-27).
//!
//! Not here: when to ask (`admission::risk`), and what follows.

mod http;

use async_trait::async_trait;

pub use http::{HttpJudge, JudgeSettings};

/// What the judge is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matter {
    /// What is judged: a commitment, an amendment, or a call.
    pub kind: &'static str,
    /// The fields under examination, each a text of its own.
    pub fields: Vec<(&'static str, String)>,
}

/// What a judge thinks.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// The answer.
    pub finding: Finding,
    /// From 0 to 1, if the judge said so.
    pub confidence: Option<f64>,
    /// Tokens spent, for the judge's own meter.
    pub tokens: u64,
    /// Its words, or why there is no answer. For the audit store only.
    pub words: String,
}

/// The answer of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The matter agrees with the goal.
    Consistent,
    /// It does not.
    Inconsistent,
    /// The judge cannot tell.
    Unsure,
    /// No answer came, or none that is one.
    NoAnswer,
}

/// Whoever can be asked.
#[async_trait]
pub trait Judge: Send + Sync {
    /// Asks. Answers in bounded time, whatever happens.
    async fn ask(&self, matter: &Matter) -> Opinion;
}
