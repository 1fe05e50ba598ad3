//! The result of verifying an answer.

use bundle::BundleVerdict;
use lookup_tree::BlindCode;
use registration::LookupKind;
use serde::{Serialize, Serializer};
use verifier::index::SearchTerm;
use verifier::{Check, CheckName, CheckState, Code};

use crate::answer::SearchQuestion;

/// Complete result of the verification of an answer.
///
/// Details quote text of the entries: escape them before printing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerVerdict {
    /// Overall result.
    pub outcome: AnswerOutcome,
    /// Reason why `outcome` is [`AnswerOutcome::NotProven`] or [`AnswerOutcome::Wrong`].
    pub reason: Option<Code>,
    /// The question. A reader compares it with what it wanted to know.
    pub question: QuestionFacts,
    /// The leaves that were searched; `None` if nothing is proven about them.
    pub searched: Option<SearchedLeaves>,
    /// The entries with all terms, by ascending leaf index. They are all of them only if nothing is missing.
    pub found: Vec<FoundEntry>,
    /// What the answer leaves open, by ascending leaf index.
    pub gaps: Vec<AnswerGap>,
    /// Results of the entries, policies and checkpoint in the file.
    pub evidence: BundleVerdict,
    /// Checks of the answer as a whole, including those not done.
    pub checks: Vec<Check>,
}

/// A question, for people and JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuestionFacts {
    /// The terms, all of which an entry must have.
    pub terms: Vec<TermFacts>,
    /// The first leaf.
    pub from: u64,
    /// The leaf after the last one; `None` for all leaves of the checkpoint.
    pub to: Option<u64>,
}

/// A term of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TermFacts {
    /// Name of the kind; its number if it is unknown to this program.
    pub kind: String,
    /// The value; bytes that are not UTF-8 are replaced.
    pub value: String,
}

impl QuestionFacts {
    pub(crate) fn of(question: &SearchQuestion) -> Self {
        let (from, to) = (question.from.get(), question.to.map(|to| to.get()));
        Self { terms: question.terms.iter().map(TermFacts::of).collect(), from, to }
    }
}

impl TermFacts {
    fn of(term: &SearchTerm) -> Self {
        let kind = LookupKind::ALL.into_iter().find(|kind| kind.number() == term.kind);
        Self {
            kind: kind.map_or_else(|| term.kind.to_string(), |kind| kind.name().to_owned()),
            value: String::from_utf8_lossy(&term.value).into_owned(),
        }
    }
}

/// The possible results of the verification of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerOutcome {
    /// The answer has every entry with the terms.
    Complete,
    /// So it is, except for the [gaps](AnswerVerdict::gaps).
    CompleteBut,
    /// No check failed, but a required check could not be done.
    NotProven,
    /// A check failed.
    Wrong,
}

/// Leaves that were searched under a head of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SearchedLeaves {
    /// The first leaf.
    pub from: u64,
    /// The leaf after the last one that the index proves.
    pub to: u64,
    /// Time of the head (`iat`) in Unix seconds; the log registers it within seconds.
    pub at: Option<i64>,
    /// Leaf index of the head.
    pub head: u64,
}

/// An entry that has all terms of the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundEntry {
    /// Leaf index.
    pub leaf: u64,
    /// Entry ID in hexadecimal.
    pub entry: String,
    /// Content type; for a hash envelope, that of the preimage.
    pub content_type: Option<String>,
    /// Issuer (`iss`).
    pub iss: Option<String>,
    /// Subject (`sub`).
    pub sub: Option<String>,
}

/// Something that an answer leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "gap", rename_all = "kebab-case")]
pub enum AnswerGap {
    /// An entry was erased; it may have had the terms.
    Erased {
        /// Leaf index.
        leaf: u64,
        /// Entry ID in hexadecimal.
        entry: String,
        /// Leaf index of the statement that erased it.
        by: u64,
    },
    /// An entry cannot be read in full; it may have the terms.
    Unread {
        /// Leaf index.
        leaf: u64,
        /// The reason.
        #[serde(serialize_with = "reason")]
        why: BlindCode,
    },
    /// Leaves after those of the head, whose entries are not in the file.
    NotSearched {
        /// The first leaf.
        from: u64,
        /// The leaf after the last one.
        to: u64,
    },
}

impl AnswerGap {
    /// The first leaf.
    pub fn leaf(&self) -> u64 {
        match self {
            Self::Erased { leaf, .. } | Self::Unread { leaf, .. } | Self::NotSearched { from: leaf, .. } => {
                *leaf
            }
        }
    }
}

fn reason<S: Serializer>(why: &BlindCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match why {
        BlindCode::Erased => "erased",
        BlindCode::Unreadable => "unreadable",
        BlindCode::TooManyTerms => "too-many-terms",
    })
}

pub(crate) fn failed(name: CheckName, code: Code, detail: String) -> Check {
    Check { name, receipt: None, state: CheckState::Failed, code: Some(code), detail }
}

pub(crate) fn not_done(name: CheckName, code: Code, detail: String) -> Check {
    Check { name, receipt: None, state: CheckState::NotDone, code: Some(code), detail }
}

pub(crate) fn passed(name: CheckName, detail: String) -> Check {
    Check { name, receipt: None, state: CheckState::Ok, code: None, detail }
}
