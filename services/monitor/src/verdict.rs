//! What two checkpoints, or a file of evidence, show to somebody who believes nobody.
//!
//! Pure: no network, no clock, no state. A relation between checkpoints counts only if the log's key signed both. Where a
//! file rests on the monitor's word, this says so, and does not repeat the accusation as its own.
//!
//! Not here: fetching a proof (`client::TlogClient`), and printing (`tabellion checkpoint diff`).

pub(crate) mod chain;
mod compare;
mod judge;
mod receipts;

use std::fmt;

use serde::Serialize;

pub use compare::{Join, compare};
pub use judge::judge;

use crate::round::Outcome;

/// What follows from what was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Two checkpoints of one tree head.
    Same,
    /// The older tree is the beginning of the newer one.
    Consistent,
    /// The log signed both, and no tree can have both: it misbehaved, whoever says so.
    Contradiction,
    /// An issuer signed two statements that cannot both be true, whoever says so.
    Equivocation,
    /// What is signed is as the evidence says; that the log showed it, and when, is the monitor's word.
    OnWord,
    /// Nothing follows: there is no key, no proof, or they are of two logs.
    Unknown,
    /// A signature or a proof is wrong, or the evidence does not show what it says.
    Wrong,
}

/// One thing that was checked, or was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What was found. May repeat what strangers wrote: to be escaped where it is shown.
    pub words: String,
}

/// A tree head that a note claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    /// Of which log.
    pub origin: String,
    /// Leaves.
    pub size: u64,
    /// The root, hex.
    pub root: String,
    /// Where and when it was seen, if the evidence says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// The whole of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What follows.
    pub verdict: Verdict,
    /// In a sentence.
    pub words: String,
    /// The tree heads in question, the older one first.
    pub heads: Vec<Head>,
    /// What was checked, in order.
    pub steps: Vec<Step>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "same",
            Self::Consistent => "consistent",
            Self::Contradiction => "contradiction",
            Self::Equivocation => "equivocation",
            Self::OnWord => "on-word",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
        })
    }
}

impl Finding {
    fn begin() -> Self {
        Self { verdict: Verdict::Unknown, words: String::new(), heads: Vec::new(), steps: Vec::new() }
    }

    fn ok(&mut self, name: &'static str, words: impl Into<String>) {
        self.steps.push(Step { name, outcome: Outcome::Ok, words: words.into() });
    }

    fn not_checked(&mut self, name: &'static str, words: impl Into<String>) {
        self.steps.push(Step { name, outcome: Outcome::NotChecked, words: words.into() });
    }

    fn failed(&mut self, name: &'static str, words: impl Into<String>) {
        self.steps.push(Step { name, outcome: Outcome::Failed, words: words.into() });
    }

    /// What a key that nobody knows signed accuses nobody.
    fn accuses_nobody(self, hint: &str) -> Self {
        let words = "an unknown signer: the two cannot both be true, but nobody checked whose key it is";
        self.ends(Verdict::Unknown, format!("{words}; {hint}"))
    }

    fn ends(mut self, verdict: Verdict, words: impl Into<String>) -> Self {
        self.verdict = verdict;
        self.words = words.into();
        self
    }
}

#[cfg(test)]
mod tests;
