//! Accusations: files that show offline, without the log, that its index is wrong.
//!
//! A head is a registered statement of the log, so that the log cannot disown what it commits to. `index-omits` shows a
//! statement that has a term, and the proof that the index lacks it; `index-adds` shows the opposite; `index-form` shows
//! a head that breaks a rule of its form. A reader verifies each with the trust store and the index of the log, and with
//! a program that reads the terms of statements.
//!
//! Not here: that two computations of an index differ, which needs the statements of the log.

use std::collections::BTreeSet;

use lookup_tree::{IndexHead, IndexQuestion, LeafRange, Posting, RunProof, TermKey};
use merkle::verify::{consistency, inclusion};
use merkle::{EntryDigest, Hash, LeafIndex, RootHash};
use scitt::SignedStatement;

use super::head::{IndexHeadEvidence, ProvenHead, TrustedIndex};
use super::search::SearchTerm;
use crate::TrustStore;
use crate::payload;
use crate::verdict::{CheckState, VerificationOutcome};
use crate::witnesses::CheckpointEvidence;

/// Reads the keys of a statement's terms, with its payload if that is given. `None` if it cannot be read without its
/// payload.
pub type TermReader<'r> = &'r dyn Fn(&SignedStatement, Option<&[u8]>) -> Option<BTreeSet<TermKey>>;

/// An accusation against the index of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexAccusation {
    /// The statement has the term, and the index does not have its posting.
    Omits(PostingEvidence),
    /// The index has the posting, and the statement does not have the term.
    Adds(PostingEvidence),
    /// A head breaks a rule of its form.
    Form(IndexFormFault),
}

/// An accusation as a file, with the policy that describes the index: it convinces without the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexAccusationFile {
    /// The registration policy under which the log registered the heads of the accusation.
    pub policy: IndexPolicyEvidence,
    /// The accusation.
    pub accusation: IndexAccusation,
}

/// A registration policy of the log, as a statement that the log registered before the heads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPolicyEvidence {
    /// The statement whose payload is the policy.
    pub statement: Vec<u8>,
    /// A receipt of the statement.
    pub receipt: Vec<u8>,
}

/// A statement, and what the index says about one of its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostingEvidence {
    /// The head of the index.
    pub head: IndexHeadEvidence,
    /// The leaf of the statement.
    pub leaf: LeafIndex,
    /// The statement.
    pub statement: Vec<u8>,
    /// The preimage of the statement, if it is a hash envelope.
    pub payload: Option<Vec<u8>>,
    /// The path from the statement's leaf to the head's root of the log.
    pub path: Vec<Hash>,
    /// The term.
    pub term: SearchTerm,
    /// The encoded proof of the run that has the leaf, for the term and this leaf alone.
    pub proof: Vec<u8>,
}

/// Heads that break a rule of their form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexFormFault {
    /// The runs of the head are not those of the schedule for its size.
    WrongRuns(IndexHeadEvidence),
    /// The later head has a smaller horizon than the earlier one.
    HorizonBack {
        /// The head at the lower leaf.
        earlier: IndexHeadEvidence,
        /// The head at the higher leaf.
        later: IndexHeadEvidence,
    },
    /// The head names another root of the log than the log had at that size.
    OtherLogRoot {
        /// The head.
        head: IndexHeadEvidence,
        /// The root of the log at the size of the head.
        root: RootHash,
        /// The path of consistency from that tree to the one that the receipt signs.
        path: Vec<Hash>,
    },
    /// Two different heads of one size and horizon.
    TwoHeads(IndexHeadEvidence, IndexHeadEvidence),
}

/// Reasons why an accusation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccusationRefused {
    /// A head is not verified.
    #[error("the head is not verified: {0}")]
    Head(String),
    /// The statement is malformed, or its payload is not the one that was signed.
    #[error("the statement or its payload: {0}")]
    Statement(String),
    /// The statement is not in the log at this leaf.
    #[error("the statement is not at leaf {leaf} of the log: {why}")]
    Inclusion {
        /// The leaf.
        leaf: LeafIndex,
        /// Why the path is refused.
        why: String,
    },
    /// The run proof is malformed or refused.
    #[error("the run proof: {0}")]
    Proof(String),
    /// The terms of the statement cannot be read from the file.
    #[error("the terms of the statement cannot be read without its payload")]
    Unreadable,
    /// The index says that the entry may have any term.
    #[error("the index lists leaf {0} as blind")]
    Blind(LeafIndex),
    /// The index and the statement agree.
    #[error("index and statement agree about the term")]
    Agrees,
    /// The heads keep the rule.
    #[error("the rule is kept: {0}")]
    RuleKept(&'static str),
}

impl IndexAccusation {
    /// Stable name of the kind of accusation.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Omits(_) => "index-omits",
            Self::Adds(_) => "index-adds",
            Self::Form(_) => "index-form",
        }
    }

    /// Checks that the file shows the log's misbehaviour, at `now` (Unix seconds).
    pub fn check(
        &self,
        index: &TrustedIndex,
        trust: &TrustStore,
        terms: TermReader<'_>,
        now: u64,
    ) -> Result<(), AccusationRefused> {
        let heads = HeadVerifier { index, trust, now };
        match self {
            Self::Omits(evidence) => match evidence.compare(&heads, terms)? {
                Comparison { of_statement: true, in_index: false, blind: false } => Ok(()),
                Comparison { blind: true, .. } => Err(AccusationRefused::Blind(evidence.leaf)),
                _ => Err(AccusationRefused::Agrees),
            },
            Self::Adds(evidence) => match evidence.compare(&heads, terms)? {
                Comparison { of_statement: false, in_index: true, .. } => Ok(()),
                _ => Err(AccusationRefused::Agrees),
            },
            Self::Form(fault) => fault.check(&heads),
        }
    }
}

/// The heads of one index.
struct HeadVerifier<'a> {
    index: &'a TrustedIndex,
    trust: &'a TrustStore,
    now: u64,
}

impl HeadVerifier<'_> {
    fn verify(&self, head: &IndexHeadEvidence) -> Result<ProvenHead, AccusationRefused> {
        let verdict = head.verify(self.index, &CheckpointEvidence::default(), self.trust, self.now);
        let open = verdict.checks.iter().find(|check| check.code == verdict.reason && check.code.is_some());
        let why = open.map(|check| check.detail.clone()).unwrap_or_default();
        verdict
            .head
            .filter(|_| verdict.outcome == VerificationOutcome::Verified)
            .ok_or(AccusationRefused::Head(why))
    }
}

/// What a statement and the index say about a term.
struct Comparison {
    of_statement: bool,
    in_index: bool,
    /// The index has a blind posting of the leaf.
    blind: bool,
}

impl PostingEvidence {
    fn compare(
        &self,
        heads: &HeadVerifier<'_>,
        terms: TermReader<'_>,
    ) -> Result<Comparison, AccusationRefused> {
        let head = heads.verify(&self.head)?.head;
        let statement = self.read_statement(&head)?;
        let keys = terms(&statement, self.payload.as_deref()).ok_or(AccusationRefused::Unreadable)?;
        let found = self.postings_in_index(&head)?;
        let posting = Posting { key: self.term.key(), leaf: self.leaf };
        Ok(Comparison {
            of_statement: keys.contains(&posting.key),
            in_index: found.contains(&posting),
            blind: found.iter().any(|posting| posting.blind_code().is_some()),
        })
    }

    /// Reads the statement, which is at its leaf of the tree of the head.
    fn read_statement(&self, head: &IndexHead) -> Result<SignedStatement, AccusationRefused> {
        let statement = SignedStatement::parse(self.statement.clone())
            .map_err(|why| AccusationRefused::Statement(why.to_string()))?;
        let leaf = EntryDigest::of(statement.bytes()).leaf_hash();
        inclusion(leaf, self.leaf, head.size, &self.path, head.log_root)
            .map_err(|why| AccusationRefused::Inclusion { leaf: self.leaf, why: why.to_string() })?;
        match self.payload.as_deref().and_then(|given| payload::check(&statement, Some(given), None)) {
            Some(check) if check.state != CheckState::Ok => Err(AccusationRefused::Statement(check.detail)),
            _ => Ok(statement),
        }
    }

    /// The postings of the term and of blind codes at this leaf.
    fn postings_in_index(&self, head: &IndexHead) -> Result<Vec<Posting>, AccusationRefused> {
        let refused = |why: &dyn ToString| AccusationRefused::Proof(why.to_string());
        let proof = RunProof::decode(&self.proof).map_err(|why| refused(&why))?;
        let leaves = LeafRange { start: self.leaf, end: LeafIndex::new(self.leaf.get() + 1) };
        let question = IndexQuestion::new([self.term.key()], leaves).map_err(|why| refused(&why))?;
        let runs = head.scheduled_runs().map_err(|why| refused(&why))?;
        let run = runs.iter().find(|(run, _)| run.leaves.contains(self.leaf));
        let proven = run.and_then(|(run, summary)| Some((question.for_run(run, summary)?, summary.root)));
        let (question, root) = proven.ok_or_else(|| refused(&"no run of the head has the leaf"))?;
        proof.verify(&question, root).map_err(|why| refused(&why))
    }
}

impl IndexFormFault {
    fn check(&self, heads: &HeadVerifier<'_>) -> Result<(), AccusationRefused> {
        let broken = match self {
            Self::WrongRuns(head) => heads.verify(head)?.head.scheduled_runs().is_err(),
            Self::HorizonBack { earlier, later } => {
                let (earlier, later) = (heads.verify(earlier)?, heads.verify(later)?);
                earlier.leaf < later.leaf && later.head.horizon < earlier.head.horizon
            }
            Self::OtherLogRoot { head, root, path } => {
                let ProvenHead { head, tree, .. } = heads.verify(head)?;
                consistency(head.size, tree.size, *root, tree.root, path)
                    .map_err(|why| AccusationRefused::Proof(why.to_string()))?;
                head.log_root != *root
            }
            Self::TwoHeads(one, other) => {
                let (one, other) = (heads.verify(one)?.head, heads.verify(other)?.head);
                (one.size, one.horizon) == (other.size, other.horizon) && one != other
            }
        };
        if broken { Ok(()) } else { Err(AccusationRefused::RuleKept(self.rule())) }
    }

    /// The rule that the heads should break.
    fn rule(&self) -> &'static str {
        match self {
            Self::WrongRuns(_) => "the runs are those of the schedule",
            Self::HorizonBack { .. } => "the horizon never goes back",
            Self::OtherLogRoot { .. } => "the root is that of the log at the size of the head",
            Self::TwoHeads(..) => "one head for a size and a horizon",
        }
    }
}
