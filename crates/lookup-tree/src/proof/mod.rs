//! Run proofs: the tree of a run with parts left out.

mod encoding;
mod part;
mod prove;
mod reader;
mod verify;

pub use encoding::RunProofError;
pub use part::{ProofPart, RunProof};
pub use prove::RunSource;
pub use reader::{NotRead, PartialRun, RunReader};
pub use verify::ProofRefused;
