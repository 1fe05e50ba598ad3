//! Comparison of a run proof with the postings that the run must have: finds where the run differs.
//!
//! A proof gives the hash of each subtree that it leaves out. So one pass over the postings says of each part of the proof
//! whether it is right, and the next proof can go on in a part that is not.

use lookup_tree::{Posting, PostingPrefix, ProofPart, RunBuilder, RunProof};
use merkle::Hash;

use crate::error::RecomputationError;
use crate::limits::MAX_CANDIDATES;
use crate::run_stream::RunStream;

/// Differences between a proof and the postings that the run must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProofDifference {
    /// Postings that the proof shows to be missing.
    pub missing: Vec<Posting>,
    /// Postings of the proof that the run must not have.
    pub added: Vec<Posting>,
    /// The first postings that the run must have in the first part that is left out and differs, at most
    /// [`MAX_CANDIDATES`]. A proof of one of them shows more.
    pub candidates: Vec<Posting>,
}

/// Compares a proof with the postings that its run must have. The proof must have been verified.
///
/// # Errors
/// Returns a [`RecomputationError`] if a piece cannot be read or is damaged.
pub fn compare_proof(
    proof: &RunProof,
    postings: RunStream<'_>,
) -> Result<ProofDifference, RecomputationError> {
    let mut parts = Vec::new();
    flatten(&proof.tree, PostingPrefix::ROOT, &mut parts);
    let mut found = ProofDifference::default();
    let mut postings = postings.peekable();
    for (place, part) in parts {
        let mut own = PartOfRun::default();
        while let Some(posting) =
            postings.next_if(|posting| posting.as_ref().map_or(true, |posting| *posting <= place.last()))
        {
            let posting = posting?;
            match place.contains(posting) {
                true => own.push(posting, matches!(part, ProofPart::Hidden(_)))?,
                // The tree of the proof has no place for it.
                false => found.missing.push(posting),
            }
        }
        own.compare(part, &mut found);
    }
    for posting in postings {
        found.missing.push(posting?);
    }
    Ok(found)
}

/// Lists the parts below inner nodes, each with its place, in the order of postings.
fn flatten<'p>(part: &'p ProofPart, place: PostingPrefix, parts: &mut Vec<(PostingPrefix, &'p ProofPart)>) {
    match part {
        ProofPart::Inner { prefix, left, right } => {
            if let Some((left_place, right_place)) = prefix.children() {
                flatten(left, left_place, parts);
                flatten(right, right_place, parts);
            }
        }
        ProofPart::Hidden(_) | ProofPart::Bucket(_) | ProofPart::Whole(_) => parts.push((place, part)),
    }
}

/// The postings that the run must have in one place.
#[derive(Default)]
struct PartOfRun {
    tree: RunBuilder,
    /// All of them; the first ones if only the hash is compared.
    listed: Vec<Posting>,
}

impl PartOfRun {
    fn push(&mut self, posting: Posting, is_hashed: bool) -> Result<(), RecomputationError> {
        if is_hashed {
            self.tree.push(posting).map_err(RecomputationError::Order)?;
            self.tree.take_nodes();
        }
        if !is_hashed || self.listed.len() < MAX_CANDIDATES {
            self.listed.push(posting);
        }
        Ok(())
    }

    fn compare(self, part: &ProofPart, found: &mut ProofDifference) {
        match part {
            ProofPart::Hidden(hash) if self.root() != *hash => {
                if found.candidates.is_empty() {
                    found.candidates = self.listed;
                }
            }
            ProofPart::Bucket(given) | ProofPart::Whole(given) => {
                let missing = self.listed.iter().filter(|posting| given.binary_search(posting).is_err());
                found.missing.extend(missing);
                let added = given.iter().filter(|posting| self.listed.binary_search(posting).is_err());
                found.added.extend(added);
            }
            ProofPart::Hidden(_) | ProofPart::Inner { .. } => {}
        }
    }

    fn root(&self) -> Hash {
        self.tree.clone().finish().0.root
    }
}
