//! The contents of a file with an answer.

use bundle::EvidenceBundle;
use lookup_tree::LeafRange;
use merkle::{EntryDigest, Hash, LeafIndex};
use verifier::index::{SearchProof, SearchTerm};

/// A question to the index of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuestion {
    /// The terms, all of which an entry must have; at least one.
    pub terms: Vec<SearchTerm>,
    /// The first leaf.
    pub from: LeafIndex,
    /// The leaf after the last one; `None` for all leaves of the checkpoint.
    pub to: Option<LeafIndex>,
}

/// The answer to a question, with what a reader needs to verify it offline. Nothing in it is verified before
/// [`verify`](Self::verify).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchAnswer {
    /// The question.
    pub question: SearchQuestion,
    /// The proofs, in ascending order of their leaves, under one head of the index. Each proves some of the terms.
    pub pages: Vec<SearchProof>,
    /// The erased entries among the leaves.
    pub erased: Vec<ErasedEntry>,
    /// The entries with their proofs: those with the proven terms, the head of the index, erasure statements, and, if the
    /// answer goes on after the leaves of the head, each later entry. The policies admitted them; that of the head
    /// describes the index.
    pub evidence: EvidenceBundle,
    /// Attestations of the head by monitors (`tabellion-index/v1`).
    pub attestations: Vec<String>,
}

/// An entry whose bytes were erased, with the proof of its leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedEntry {
    /// Leaf index.
    pub leaf: LeafIndex,
    /// The entry ID, which the erasure statement names.
    pub entry: EntryDigest,
    /// The path to the root of the checkpoint.
    pub path: Vec<Hash>,
}

impl SearchQuestion {
    /// Returns the leaves of the question in an index of `size` leaves, or in a tree of that size.
    pub fn leaves_within(&self, size: u64) -> LeafRange {
        let end = self.to.map_or(size, |to| to.get().min(size));
        LeafRange::new(self.from.get().min(end), end)
    }
}
