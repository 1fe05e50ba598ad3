//! Whole answers: the proofs of all runs that a question meets, under one head.
//!
//! An answer of many entries comes in pages, newest first. Each page is an answer of its own about a part of the leaves,
//! and pages join only under one head: between two heads an entry may have been erased.
//!
//! For several terms at once, the list of one of them is proven, and each entry in it is shown, so that its reader sees
//! whether it has the others; or the list of another term is proven, too, and excludes entries.

use std::collections::{BTreeMap, BTreeSet};

use merkle::{Hash, LeafIndex, TreeSize};

use crate::head::{IndexHead, WrongRuns};
use crate::posting::{BlindCode, Posting, TermKey};
use crate::proof::{ProofRefused, RunProof};
use crate::question::IndexQuestion;
use crate::schedule::{LeafRange, RunId};

/// Proofs for the runs that a question meets.
pub type RunProofs = BTreeMap<RunId, RunProof>;

/// Reasons why an answer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefused {
    /// The question is about leaves that the head does not index.
    #[error("the question is about leaves {leaves}, and the head indexes {size}")]
    BeyondHead {
        /// The leaves of the question.
        leaves: LeafRange,
        /// The size of the head.
        size: TreeSize,
    },
    /// The head has other runs than its size requires.
    #[error(transparent)]
    WrongRuns(#[from] WrongRuns),
    /// A run that the question meets has no proof.
    #[error("run {0} has no proof")]
    MissingRun(RunId),
    /// A proof for a run that the question does not meet, or that is not in the head.
    #[error("run {0} has a proof, and the question does not meet it")]
    UnneededRun(RunId),
    /// The proof of a run is refused.
    #[error("run {run}: {why}")]
    Proof {
        /// The run.
        run: RunId,
        /// Why its proof is refused.
        why: ProofRefused,
    },
}

/// All postings of a question under one head, proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenAnswer {
    head: Hash,
    question: IndexQuestion,
    postings: BTreeSet<Posting>,
}

/// Error of [`ProvenAnswer::join`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOneAnswer {
    /// The pages have different heads.
    #[error("the pages are proven under two heads: {0} and {1}")]
    OtherHead(Hash, Hash),
    /// The pages are about different keys.
    #[error("the pages are about different keys")]
    OtherKeys,
    /// Leaves between the pages are missing, or in both.
    #[error("the older page is about leaves {older}, and the newer one about {newer}")]
    NotAdjacent {
        /// Leaves of the older page.
        older: LeafRange,
        /// Leaves of the newer page.
        newer: LeafRange,
    },
}

impl IndexHead {
    /// Verifies the proofs of exactly those runs that the question meets.
    pub fn verify(&self, question: IndexQuestion, proofs: &RunProofs) -> Result<ProvenAnswer, AnswerRefused> {
        let leaves = question.leaves();
        if leaves.end.get() > self.size.get() {
            return Err(AnswerRefused::BeyondHead { leaves, size: self.size });
        }
        let mut unneeded: BTreeSet<RunId> = proofs.keys().copied().collect();
        let mut postings = BTreeSet::new();
        for (run, summary) in self.scheduled_runs()? {
            let Some(run_question) = question.for_run(&run, &summary) else { continue };
            let proof = proofs.get(&run.id).ok_or(AnswerRefused::MissingRun(run.id))?;
            let found = proof.verify(&run_question, summary.root);
            postings.extend(found.map_err(|why| AnswerRefused::Proof { run: run.id, why })?);
            unneeded.remove(&run.id);
        }
        match unneeded.first() {
            Some(run) => Err(AnswerRefused::UnneededRun(*run)),
            None => Ok(ProvenAnswer { head: self.digest(), question, postings }),
        }
    }
}

impl ProvenAnswer {
    /// The question.
    pub fn question(&self) -> &IndexQuestion {
        &self.question
    }

    /// The leaves of the entries that have this key. `None` if the question was not about it.
    pub fn leaves_of(&self, key: TermKey) -> Option<BTreeSet<LeafIndex>> {
        self.question.keys().binary_search(&key).ok()?;
        let (first, last) = (LeafIndex::new(0), LeafIndex::new(u64::MAX));
        let list = self.postings.range(Posting { key, leaf: first }..=Posting { key, leaf: last });
        Some(list.map(|posting| posting.leaf).collect())
    }

    /// The leaves that may have any term, with the reasons.
    pub fn blind(&self) -> impl Iterator<Item = (LeafIndex, BlindCode)> {
        self.postings.iter().filter_map(|posting| Some((posting.leaf, posting.blind_code()?)))
    }

    /// The leaves of the entries that must be shown, if an entry needs one key of each term. A term excludes entries if
    /// the question has all its keys. [Blind](Self::blind) leaves come in addition. `None` if no term is in the question.
    pub fn candidates(&self, terms: &[Vec<TermKey>]) -> Option<BTreeSet<LeafIndex>> {
        let lists = terms.iter().filter_map(|keys| {
            let lists: Option<Vec<_>> = keys.iter().map(|key| self.leaves_of(*key)).collect();
            Some(lists?.into_iter().flatten().collect::<BTreeSet<_>>())
        });
        lists.reduce(|one, other| one.intersection(&other).copied().collect())
    }

    /// Joins this page with the one before it, whose leaves are older.
    pub fn join(self, older: ProvenAnswer) -> Result<ProvenAnswer, NotOneAnswer> {
        let (before, after) = (older.question.leaves(), self.question.leaves());
        if older.head != self.head {
            return Err(NotOneAnswer::OtherHead(older.head, self.head));
        }
        if before.end != after.start {
            return Err(NotOneAnswer::NotAdjacent { older: before, newer: after });
        }
        let leaves = LeafRange { start: before.start, end: after.end };
        let question = self.question.with_leaves(leaves);
        if question != older.question.with_leaves(leaves) {
            return Err(NotOneAnswer::OtherKeys);
        }
        let postings = older.postings.into_iter().chain(self.postings).collect();
        Ok(ProvenAnswer { head: self.head, question, postings })
    }
}
