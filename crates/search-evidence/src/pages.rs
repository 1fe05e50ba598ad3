//! The pages of an answer: proofs of the index for adjacent leaves, under one head.

use std::collections::{BTreeMap, BTreeSet};

use lookup_tree::{BlindCode, LeafRange};
use merkle::LeafIndex;
use verifier::index::{ProvenHead, SearchFindings, SearchProof, SearchTerm, SearchVerdict, TrustedIndex};
use verifier::{Check, CheckName, CheckState, CheckpointEvidence, Code, TrustStore};

use crate::answer::SearchQuestion;
use crate::verdict::{failed, passed};

/// What the pages of an answer prove about its question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenPages {
    /// The head of the index.
    pub head: ProvenHead,
    /// The leaves of the question that the head indexes.
    pub leaves: LeafRange,
    /// The terms whose lists are proven: some or all of the question.
    pub terms: Vec<SearchTerm>,
    /// The leaves of the entries that have all proven terms, according to the index. An answer has all these entries.
    pub candidates: BTreeSet<LeafIndex>,
    /// The leaves of the entries that may have any term.
    pub blind: BTreeMap<LeafIndex, BlindCode>,
}

/// Result of [`ProvenPages::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesVerdict {
    /// What is proven; `None` if a check failed or was not done.
    pub pages: Option<ProvenPages>,
    /// The checks of the head and of all pages.
    pub checks: Vec<Check>,
}

impl ProvenPages {
    /// Verifies that the pages answer the question completely up to the size of their head. The log's receipt of the head
    /// is verified, and no cosignature.
    pub fn verify(
        question: &SearchQuestion,
        pages: &[SearchProof],
        index: &TrustedIndex,
        trust: &TrustStore,
        now: u64,
    ) -> PagesVerdict {
        let mut checks = Vec::new();
        let mut joined: Option<ProvenPages> = None;
        for page in pages {
            let verdict = page.verify(index, &CheckpointEvidence::default(), trust, now);
            if joined.is_none() || verdict.findings.is_none() {
                checks.extend(verdict.checks.iter().filter(|check| is_of_page(check)).cloned());
            }
            let Some(proven) = Self::of_page(question, page, verdict) else {
                return PagesVerdict { pages: None, checks };
            };
            joined = match joined {
                None => Some(proven),
                Some(before) => match before.join(proven) {
                    Ok(both) => Some(both),
                    Err(check) => return PagesVerdict { pages: None, checks: with(checks, check) },
                },
            };
        }
        let joined = joined.ok_or_else(|| incomplete("the file has no search proof".to_owned()));
        match joined.and_then(|pages| pages.cover(question)) {
            Ok(pages) => PagesVerdict { checks: with(checks, pages.completeness()), pages: Some(pages) },
            Err(check) => PagesVerdict { pages: None, checks: with(checks, check) },
        }
    }

    /// The leaves of erased entries.
    pub fn erased(&self) -> impl Iterator<Item = LeafIndex> {
        self.blind.iter().filter(|(_, code)| **code == BlindCode::Erased).map(|(leaf, _)| *leaf)
    }

    /// Returns what one page proves; `None` if it is not verified.
    fn of_page(question: &SearchQuestion, page: &SearchProof, verdict: SearchVerdict) -> Option<Self> {
        let (head, findings) = (verdict.head?, verdict.findings?);
        let wanted = question.leaves_within(head.head.size.get());
        let within = |leaf: &LeafIndex| wanted.contains(*leaf);
        let candidates = with_every_term(&findings).into_iter().filter(within).collect();
        let blind = findings.blind.into_iter().filter(|(leaf, _)| within(leaf)).collect();
        Some(Self { head, leaves: page.leaves, terms: page.terms.clone(), candidates, blind })
    }

    /// Joins these pages with the next one.
    fn join(mut self, next: Self) -> Result<Self, Check> {
        if next.head.head != self.head.head || next.head.leaf != self.head.leaf {
            return Err(incomplete("the search proofs have different heads".to_owned()));
        }
        if next.terms != self.terms {
            return Err(incomplete("the search proofs are about different terms".to_owned()));
        }
        if next.leaves.start != self.leaves.end {
            let why =
                format!("search proofs for leaves {} and {} are not adjacent", self.leaves, next.leaves);
            return Err(incomplete(why));
        }
        self.leaves.end = next.leaves.end;
        self.candidates.extend(next.candidates);
        self.blind.extend(next.blind);
        Ok(self)
    }

    /// Checks that terms and leaves of the pages are those of the question.
    fn cover(self, question: &SearchQuestion) -> Result<Self, Check> {
        // The entries with a term that nobody wanted say nothing about the entries with those of the question.
        if self.terms.is_empty() || !self.terms.iter().all(|term| question.terms.contains(term)) {
            return Err(incomplete("the proven terms are not those of the question".to_owned()));
        }
        let wanted = question.leaves_within(self.head.head.size.get());
        if !wanted.is_empty() && (self.leaves.start > wanted.start || self.leaves.end < wanted.end) {
            let why = format!("leaves {} are proven, and the question is about {wanted}", self.leaves);
            return Err(incomplete(why));
        }
        Ok(Self { leaves: wanted, ..self })
    }

    fn completeness(&self) -> Check {
        let (found, blind) = (self.candidates.len(), self.blind.len());
        let detail =
            format!("entries in leaves {}: {found}, blind ones: {blind}, and no others", self.leaves);
        passed(CheckName::Completeness, detail)
    }
}

/// The leaves that every list names.
fn with_every_term(findings: &SearchFindings) -> BTreeSet<LeafIndex> {
    let lists = findings.leaves.values().map(|leaves| leaves.iter().copied().collect::<BTreeSet<_>>());
    lists.reduce(|one, other| &one & &other).unwrap_or_default()
}

/// Returns `true` for a check that is not replaced by that of all pages together.
fn is_of_page(check: &Check) -> bool {
    check.name != CheckName::Completeness || check.state != CheckState::Ok
}

fn with(mut checks: Vec<Check>, check: Check) -> Vec<Check> {
    checks.push(check);
    checks
}

fn incomplete(why: String) -> Check {
    failed(CheckName::Completeness, Code::IndexProofInvalid, why)
}
