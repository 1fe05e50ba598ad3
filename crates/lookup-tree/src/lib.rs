//! A search index of a log whose answers prove that they are complete.
//!
//! The index is a set of [`Posting`]s: the key of a term, and the leaf of an entry that has it. Postings are cut into
//! runs by ranges of leaves ([`schedule()`]). Each run is a sorted list, hashed as a prefix tree that depends on the
//! set alone ([`RunBuilder`]), and eight adjacent runs merge into one ([`RunMerger`]). An [`IndexHead`] commits to the
//! roots of all runs. A [`RunProof`] shows all postings of an [`IndexQuestion`] in a run, and nothing is left out if
//! its root is that of the head; [`IndexHead::verify`] does so for all runs that the question meets.
//!
//! An entry that cannot be read has a blind posting ([`BlindCode`]): it may have any term, so it is part of every answer.
//!
//! Not here: which terms a statement has, storage, the head's statement and signature (`verifier`). The crate does no I/O
//! and knows no clock.
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use lookup_tree::{IndexQuestion, LeafRange, Posting, RunProof, RunSummary, TermKey, schedule};
//! use merkle::{LeafIndex, TreeSize};
//!
//! let key = |leaf: u64| TermKey::of(4, format!("agent-{}", leaf % 5).as_bytes());
//! let mut postings: Vec<_> = (0..40).map(|leaf| Posting { key: key(leaf), leaf: LeafIndex::new(leaf) }).collect();
//! postings.sort();
//! let summary = RunSummary::of(&postings)?;
//!
//! let run = schedule(TreeSize::new(40))[0];
//! let question = IndexQuestion::new([key(3)], LeafRange::new(10, 30))?;
//! let question = question.for_run(&run, &summary).ok_or("the run has these leaves")?;
//! let proof = RunProof::prove(&postings[..], &question)?.encode();
//!
//! let found = RunProof::decode(&proof)?.verify(&question, summary.root)?;
//! assert_eq!(found.iter().map(|posting| posting.leaf.get()).collect::<Vec<_>>(), [13, 18, 23, 28]);
//! # Ok(())
//! # }
//! ```

mod answer;
mod block;
mod build;
mod erasure;
mod group;
mod head;
pub mod limits;
mod merge;
mod node;
mod posting;
mod prefix;
mod proof;
mod question;
mod schedule;
mod tree;

pub use answer::{AnswerRefused, NotOneAnswer, ProvenAnswer, RunProofs};
pub use block::{BlockWriteError, BlockWriter, PostingBlock, read_block, read_block_between};
pub use build::{RunBuilder, RunSummary};
pub use erasure::erase;
pub use group::{GroupError, GroupErrorKind};
pub use head::{HEAD_CONTENT_TYPE, HeadError, HeadRun, IndexHead, WrongRuns};
pub use merge::{MergeStep, RunMerger};
pub use node::{InnerNode, NODE_BYTES};
pub use posting::{BlindCode, OutOfOrder, POSTING_BYTES, Posting, TermKey};
pub use prefix::{POSTING_BITS, PREFIX_BYTES, PostingPrefix};
pub use proof::{
    NotRead, PartialRun, ProofPart, ProofRefused, RunProof, RunProofError, RunReader, RunSource,
};
pub use question::{IndexQuestion, RunQuestion, TooManyKeys};
pub use schedule::{LeafRange, RunId, ScheduledRun, schedule};
pub use tree::RunTree;
