//! Making of run proofs.
//!
//! The prover goes down the tree and opens each place that the question meets. It reads the run through a [`RunSource`],
//! so that a store decides what to load: stored nodes for the upper part of a large run, and postings for the rest.

use std::convert::Infallible;

use super::part::{ProofPart, RunProof};
use crate::build::hash_ordered;
use crate::limits::MAX_BUCKET_POSTINGS;
use crate::node::InnerNode;
use crate::posting::Posting;
use crate::prefix::PostingPrefix;
use crate::question::RunQuestion;

/// A run as the prover reads it.
///
/// The prover does not wait: a [`RunReader`](super::RunReader) plans what an asynchronous store reads before. Both methods
/// take a place and depend on it alone.
pub trait RunSource {
    /// Why something cannot be read.
    type Error;

    /// The stored node with the shortest prefix within this place. `None` if there is none, and then the prover reads all
    /// postings of the place.
    fn node_at(&self, place: &PostingPrefix) -> Result<Option<InnerNode>, Self::Error>;

    /// All postings of the run with this prefix, in order.
    fn postings_at(&self, place: &PostingPrefix) -> Result<Vec<Posting>, Self::Error>;
}

/// All postings of a run, in order.
impl RunSource for [Posting] {
    type Error = Infallible;

    fn node_at(&self, _: &PostingPrefix) -> Result<Option<InnerNode>, Infallible> {
        Ok(None)
    }

    fn postings_at(&self, place: &PostingPrefix) -> Result<Vec<Posting>, Infallible> {
        let start = self.partition_point(|posting| *posting < place.first());
        let end = self.partition_point(|posting| *posting <= place.last());
        Ok(self[start..end].to_vec())
    }
}

impl RunProof {
    /// Proves the answer of a run to a question. The proof does not depend on which nodes the source has.
    ///
    /// # Errors
    /// Returns the first error of the source.
    pub fn prove<S: RunSource + ?Sized>(source: &S, question: &RunQuestion) -> Result<Self, S::Error> {
        let tree = prove_place(source, question, &PostingPrefix::ROOT)?;
        Ok(Self { tree })
    }
}

/// Proves a place that the question meets.
fn prove_place<S: RunSource + ?Sized>(
    source: &S,
    question: &RunQuestion,
    place: &PostingPrefix,
) -> Result<ProofPart, S::Error> {
    let Some(node) = source.node_at(place)? else {
        return Ok(prove_postings(&source.postings_at(place)?, question));
    };
    if question.covers(&node.prefix) {
        return Ok(ProofPart::Whole(source.postings_at(&node.prefix)?));
    }
    let child = |place: Option<PostingPrefix>, hash| match place.filter(|place| question.meets(place)) {
        Some(place) => prove_place(source, question, &place),
        None => Ok(ProofPart::Hidden(hash)),
    };
    let (left, right) = node.prefix.children().unzip();
    Ok(inner(node.prefix, child(left, node.left)?, child(right, node.right)?))
}

/// Proves a place that the question meets, from all postings in it.
fn prove_postings(postings: &[Posting], question: &RunQuestion) -> ProofPart {
    let (Some(first), Some(last)) = (postings.first(), postings.last()) else {
        return ProofPart::Bucket(Vec::new());
    };
    if postings.len() <= MAX_BUCKET_POSTINGS {
        return ProofPart::Bucket(postings.to_vec());
    }
    let prefix = PostingPrefix::common(*first, *last);
    if question.covers(&prefix) {
        return ProofPart::Whole(postings.to_vec());
    }
    let (left_place, right_place) = prefix.children().unzip();
    let start_of_right = right_place.map_or(*last, |place: PostingPrefix| place.first());
    let (left, right) = postings.split_at(postings.partition_point(|posting| *posting < start_of_right));
    let child = |place: Option<PostingPrefix>, postings: &[Posting]| match place {
        Some(place) if question.meets(&place) => prove_postings(postings, question),
        _ => ProofPart::Hidden(hash_ordered(postings)),
    };
    inner(prefix, child(left_place, left), child(right_place, right))
}

fn inner(prefix: PostingPrefix, left: ProofPart, right: ProofPart) -> ProofPart {
    ProofPart::Inner { prefix, left: Box::new(left), right: Box::new(right) }
}
