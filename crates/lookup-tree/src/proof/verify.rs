//! Verification of run proofs.
//!
//! The verifier knows what each place in the tree can hold: everything at the root, and the prefix followed by a zero
//! bit, or by a one bit, below an inner node. A part may be left out only where the question is about no posting that the
//! place can hold.

use merkle::Hash;

use super::part::{ProofPart, RunProof};
use crate::build::RunSummary;
use crate::limits::MAX_BUCKET_POSTINGS;
use crate::node::{hash_bucket, hash_inner};
use crate::posting::{OutOfOrder, Posting};
use crate::prefix::PostingPrefix;
use crate::question::RunQuestion;

/// Reasons why a run proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofRefused {
    /// A part is left out whose place can hold a posting of the question.
    #[error("a part is left out that can hold postings of the question: {} bits from key {}", .0.depth(), .0.first().key)]
    HiddenMeetsQuestion(PostingPrefix),
    /// An inner node has a prefix that its place does not allow, or one of all bits.
    #[error("a node of {} bits from key {} is not where it belongs", .0.depth(), .0.first().key)]
    PrefixOutsidePlace(PostingPrefix),
    /// A posting is not where it belongs.
    #[error("the posting of key {} at leaf {} is not where it belongs", .0.key, .0.leaf)]
    PostingOutsidePlace(Posting),
    /// Postings do not ascend, or one occurs twice.
    #[error(transparent)]
    OutOfOrder(#[from] OutOfOrder),
    /// A bucket has more postings than fit.
    #[error("a bucket of {0} postings: at most {MAX_BUCKET_POSTINGS} are in one")]
    BucketTooLarge(usize),
    /// A subtree that is given as a list would be a bucket.
    #[error("a whole subtree of {0} postings is a bucket")]
    WholeTooSmall(usize),
    /// A subtree that is given as a list has a posting that the question is not about.
    #[error("the posting of key {} at leaf {}, in a whole subtree, is not in the question", .0.key, .0.leaf)]
    WholeOutsideQuestion(Posting),
    /// The tree of the proof has another root than the run.
    #[error("the proof leads to root {implied}, and the root of the run is {expected}")]
    RootMismatch {
        /// The root of the proof's tree.
        implied: Hash,
        /// The root of the run.
        expected: Hash,
    },
}

impl RunProof {
    /// Verifies that the tree of this proof has the root of the run, and returns all postings of the question, in order.
    /// Those of blind codes are entries that may match.
    pub fn verify(&self, question: &RunQuestion, root: Hash) -> Result<Vec<Posting>, ProofRefused> {
        let mut found = Vec::new();
        let implied = check(&self.tree, &PostingPrefix::ROOT, question, &mut found)?;
        match implied == root {
            true => Ok(found),
            false => Err(ProofRefused::RootMismatch { implied, expected: root }),
        }
    }
}

/// Checks a part, adds the postings of the question to `found`, and returns the hash of the part. The depth of places
/// grows with each inner node, so that recursion is bounded by the length of a posting.
fn check(
    part: &ProofPart,
    place: &PostingPrefix,
    question: &RunQuestion,
    found: &mut Vec<Posting>,
) -> Result<Hash, ProofRefused> {
    match part {
        ProofPart::Hidden(_) if question.meets(place) => Err(ProofRefused::HiddenMeetsQuestion(*place)),
        ProofPart::Hidden(hash) => Ok(*hash),
        ProofPart::Bucket(postings) => {
            check_bucket(postings, place)?;
            found.extend(postings.iter().filter(|posting| question.contains(**posting)));
            Ok(hash_bucket(postings))
        }
        ProofPart::Whole(postings) => {
            let hash = check_whole(postings, place, question)?;
            found.extend(postings);
            Ok(hash)
        }
        ProofPart::Inner { prefix, left, right } => {
            let children = prefix.children().filter(|_| prefix.is_within(place));
            let places = children.ok_or(ProofRefused::PrefixOutsidePlace(*prefix))?;
            let left = check(left, &places.0, question, found)?;
            let right = check(right, &places.1, question, found)?;
            Ok(hash_inner(prefix, left, right))
        }
    }
}

fn check_bucket(postings: &[Posting], place: &PostingPrefix) -> Result<(), ProofRefused> {
    if postings.len() > MAX_BUCKET_POSTINGS {
        return Err(ProofRefused::BucketTooLarge(postings.len()));
    }
    check_postings(postings, place)
}

/// Checks a subtree that is given as a list, and returns its hash.
fn check_whole(
    postings: &[Posting],
    place: &PostingPrefix,
    question: &RunQuestion,
) -> Result<Hash, ProofRefused> {
    if postings.len() <= MAX_BUCKET_POSTINGS {
        return Err(ProofRefused::WholeTooSmall(postings.len()));
    }
    check_postings(postings, place)?;
    match postings.iter().find(|posting| !question.contains(**posting)) {
        Some(outside) => Err(ProofRefused::WholeOutsideQuestion(*outside)),
        None => Ok(RunSummary::of(postings)?.root),
    }
}

fn check_postings(postings: &[Posting], place: &PostingPrefix) -> Result<(), ProofRefused> {
    OutOfOrder::check_all(postings)?;
    match postings.iter().find(|posting| !place.contains(**posting)) {
        Some(outside) => Err(ProofRefused::PostingOutsidePlace(*outside)),
        None => Ok(()),
    }
}
