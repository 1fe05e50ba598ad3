//! Verification of two checkpoints or of an evidence file, without trust in the accuser or the log.
//!
//! Pure functions: no network, no clock, no state. A relation between checkpoints counts only if the log's key signed
//! both. If a file rests on the monitor's statement alone, the finding says so and does not repeat the accusation as
//! its own.
//!
//! Not here: fetching a proof (`client::TlogClient`), and printing (`tabellion checkpoint diff`).

pub(crate) mod chain;
mod compare;
mod index;
mod judge;
mod receipts;

use std::fmt;

use serde::Serialize;

pub use compare::{CheckpointKeys, Join, compare};
pub use judge::judge;

use crate::round::Outcome;

/// Conclusion of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Both checkpoints have the same size and root.
    Same,
    /// The older tree is a prefix of the newer one.
    Consistent,
    /// The log signed both checkpoints, and no append-only tree has both: proof of misbehaviour.
    Contradiction,
    /// An issuer signed two statements that exclude each other: proof of misbehaviour.
    Equivocation,
    /// The signatures are as described; that the log showed the data, and when, is the monitor's word.
    OnWord,
    /// No conclusion: a key or a proof is missing, or the checkpoints are of two logs.
    Unknown,
    /// A signature or proof is invalid, or the evidence does not support the accusation.
    Wrong,
}

/// A verification step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerificationStep {
    /// Name of the step.
    pub name: &'static str,
    /// Result of the step.
    pub outcome: Outcome,
    /// The findings. May contain text from untrusted sources: escape it before display.
    pub words: String,
}

/// A tree head claimed by a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimedHead {
    /// Origin of the log.
    pub origin: String,
    /// Tree size: the number of leaves.
    pub size: u64,
    /// The root hash, in hex.
    pub root: String,
    /// Time and source of the sighting; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// Result of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerificationResult {
    /// The conclusion.
    pub verdict: Verdict,
    /// The conclusion in a sentence.
    pub words: String,
    /// The tree heads, the older one first.
    pub heads: Vec<ClaimedHead>,
    /// The steps in order.
    pub steps: Vec<VerificationStep>,
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

impl VerificationResult {
    fn begin() -> Self {
        Self { verdict: Verdict::Unknown, words: String::new(), heads: Vec::new(), steps: Vec::new() }
    }

    fn ok(&mut self, name: &'static str, words: impl Into<String>) {
        self.steps.push(VerificationStep { name, outcome: Outcome::Ok, words: words.into() });
    }

    fn not_checked(&mut self, name: &'static str, words: impl Into<String>) {
        self.steps.push(VerificationStep { name, outcome: Outcome::NotChecked, words: words.into() });
    }

    fn failed(&mut self, name: &'static str, words: impl Into<String>) {
        self.steps.push(VerificationStep { name, outcome: Outcome::Failed, words: words.into() });
    }

    /// Concludes [`Verdict::Unknown`]: signatures by a key of unknown ownership accuse no party. `hint` tells how to
    /// give the key.
    fn accuses_nobody(self, hint: &str) -> Self {
        let words =
            "an unknown signer: the two cannot both be true, but the owner of the key was not checked";
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
