//! The parts of a run proof.

use merkle::Hash;

use crate::posting::Posting;
use crate::prefix::PostingPrefix;

/// A proof that some postings are all those of a run that a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProof {
    /// The tree of the run.
    pub tree: ProofPart,
}

/// A subtree in a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofPart {
    /// A subtree that is left out: its hash.
    Hidden(Hash),
    /// A bucket: all postings below, at most [`MAX_BUCKET_POSTINGS`](crate::limits::MAX_BUCKET_POSTINGS), in order.
    Bucket(Vec<Posting>),
    /// A larger subtree whose postings are all in the question: all postings below, in order.
    Whole(Vec<Posting>),
    /// An inner node.
    Inner {
        /// The bits that all postings below share.
        prefix: PostingPrefix,
        /// The child whose postings go on with a zero bit.
        left: Box<ProofPart>,
        /// The child whose postings go on with a one bit.
        right: Box<ProofPart>,
    },
}
