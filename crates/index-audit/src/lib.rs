//! Recomputation of a log's search index from its statements: says which run of which head is wrong.
//!
//! ```text
//! entries in the order of leaves ──▶ IndexRecomputation ── pieces of 4,096 leaves ──▶ folder
//!                                            ▲      │
//!                                  head ─────┘      └──▶ faults of its form, wrong runs, runs that cannot be compared
//! ```
//!
//! The postings of the entries are kept on disk in pieces, the runs of level 0, about 8 bytes for each. Any run of any head
//! is a merge of pieces, so that the runs of a head can be computed at any later time. The summary of a run is remembered
//! until an entry of it is erased. Memory is bounded by one piece, one decoded block (about 50 KB) for each piece of the run
//! that is being computed, and the erased entries that no compared head covers yet.
//!
//! Which postings a head must have follows from its horizon: an entry that was erased by a statement below it has the blind
//! posting only. An entry whose statement was gone before it was read, and that is not erased for the head, makes its run
//! incomparable.
//!
//! Not here: reading a log, the signature and the policy of a head, evidence for others (`verifier::index`). The folder has
//! one user at a time, which the caller ensures.

mod earlier_head;
mod entry;
mod error;
mod fault;
mod heads;
pub mod limits;
mod piece;
mod piece_folder;
mod proof_comparison;
mod recomputation;
mod run_stream;
mod state;

pub use earlier_head::EarlierHead;
pub use entry::IndexedEntry;
pub use error::RecomputationError;
pub use fault::{FormFault, NotComparable, RunComparison, UncomparedRun, WrongRun};
pub use proof_comparison::{ProofDifference, compare_proof};
pub use recomputation::IndexRecomputation;
pub use run_stream::RunStream;
