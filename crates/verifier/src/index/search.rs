//! A search answer with the proof that it is complete.

use std::collections::BTreeMap;

use lookup_tree::{AnswerRefused, BlindCode, IndexQuestion, LeafRange, RunId, RunProof, RunProofs, TermKey};
use merkle::LeafIndex;

use super::head::{IndexHeadEvidence, IndexHeadVerdict, ProvenHead, TrustedIndex};
use crate::TrustStore;
use crate::verdict::{Check, CheckName, CheckpointFacts, Code, VerificationOutcome};
use crate::witnesses::CheckpointEvidence;

/// A search value with the number of its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchTerm {
    /// Number of the kind.
    pub kind: u8,
    /// The value at its full length.
    pub value: Vec<u8>,
}

impl SearchTerm {
    /// The key of the term.
    pub fn key(&self) -> TermKey {
        TermKey::of(self.kind, &self.value)
    }
}

/// The proof that no other entries of some leaves have one of some terms.
///
/// The entries themselves are not in it: their leaves are among the findings of the verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchProof {
    /// The head of the index.
    pub head: IndexHeadEvidence,
    /// The terms whose lists are proven.
    pub terms: Vec<SearchTerm>,
    /// The leaves that were searched.
    pub leaves: LeafRange,
    /// The encoded proof of each run that has some of these leaves.
    pub proofs: BTreeMap<RunId, Vec<u8>>,
}

/// The leaves that a search proof names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchFindings {
    /// The leaves of the entries with each term, in the order of the leaves.
    pub leaves: BTreeMap<SearchTerm, Vec<LeafIndex>>,
    /// The leaves of entries that may have any term, with the reasons.
    pub blind: Vec<(LeafIndex, BlindCode)>,
}

/// Result of [`SearchProof::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchVerdict {
    /// Overall result.
    pub outcome: VerificationOutcome,
    /// Reason why `outcome` is not [`VerificationOutcome::Verified`].
    pub reason: Option<Code>,
    /// The head; present only if it is verified. Leaves from its size on were not searched.
    pub head: Option<ProvenHead>,
    /// The leaves of the answer; present only if it is verified.
    pub findings: Option<SearchFindings>,
    /// Contents of the checkpoint that was given, and its cosignatures.
    pub checkpoint: Option<CheckpointFacts>,
    /// All checks, including those not done.
    pub checks: Vec<Check>,
}

impl SearchProof {
    /// Verifies the head like [`IndexHeadEvidence::verify`], and that the proofs show all postings of the terms. The caller
    /// compares terms and leaves with what it wanted to know.
    pub fn verify(
        &self,
        index: &TrustedIndex,
        checkpoint: &CheckpointEvidence<'_>,
        trust: &TrustStore,
        now: u64,
    ) -> SearchVerdict {
        let IndexHeadVerdict { head, checkpoint, mut checks, .. } =
            self.head.verify(index, checkpoint, trust, now);
        let findings = match &head {
            Some(proven) => self.find(proven),
            None => {
                Err(Check::not_done(CheckName::Completeness, Code::NotReached, "the head is not verified"))
            }
        };
        checks.push(match &findings {
            Ok(findings) => Check::ok(CheckName::Completeness, self.describe(findings)),
            Err(check) => check.clone(),
        });
        let (outcome, reason) = VerificationOutcome::of(&checks);
        SearchVerdict { outcome, reason, head, findings: findings.ok(), checkpoint, checks }
    }

    /// Verifies the proofs against a head.
    fn find(&self, proven: &ProvenHead) -> Result<SearchFindings, Check> {
        let question = IndexQuestion::new(self.terms.iter().map(SearchTerm::key), self.leaves);
        let question = question.map_err(|why| failed(Code::IndexProofInvalid, why.to_string()))?;
        let answer = proven.head.verify(question, &self.read_proofs()?).map_err(refused)?;
        let list = |term: &SearchTerm| {
            let leaves = answer.leaves_of(term.key()).unwrap_or_default();
            (term.clone(), leaves.into_iter().collect())
        };
        Ok(SearchFindings { leaves: self.terms.iter().map(list).collect(), blind: answer.blind().collect() })
    }

    fn read_proofs(&self) -> Result<RunProofs, Check> {
        let read = |(run, bytes): (&RunId, &Vec<u8>)| {
            let proof = RunProof::decode(bytes);
            let proof = proof.map_err(|why| failed(Code::IndexProofInvalid, format!("run {run}: {why}")))?;
            Ok((*run, proof))
        };
        self.proofs.iter().map(read).collect()
    }

    fn describe(&self, findings: &SearchFindings) -> String {
        let found: usize = findings.leaves.values().map(Vec::len).sum();
        let blind = findings.blind.len();
        format!("postings in leaves {}: {found}, blind ones: {blind}, and no others", self.leaves)
    }
}

fn refused(why: AnswerRefused) -> Check {
    let code = match why {
        AnswerRefused::BeyondHead { .. } => Code::IndexBeyondHead,
        AnswerRefused::WrongRuns(_) => Code::IndexRunsWrong,
        AnswerRefused::MissingRun(_) | AnswerRefused::UnneededRun(_) | AnswerRefused::Proof { .. } => {
            Code::IndexProofInvalid
        }
    };
    failed(code, why.to_string())
}

fn failed(code: Code, why: String) -> Check {
    Check::failed(CheckName::Completeness, code, why)
}
