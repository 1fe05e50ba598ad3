//! Searches of a log's index, verified offline: the answer has every entry of the log that it should have.
//!
//! The log registers heads of its index on itself. [`IndexHeadEvidence::verify`] goes from a checkpoint or receipt to the
//! head: the statement is in the log, a key of the index signed it, and its payload is a head of the series.
//! [`SearchProof::verify`] goes on from the head to the leaves. An [`IndexAccusation`] shows with the same parts that the
//! log's index is wrong.
//!
//! A proof ties the log to a public claim. Only a monitor that computes the index from the statements shows that the claim
//! is right: it signs an [`IndexAttestation`]. Not here: which terms a statement has, and the entries themselves.

mod accusation;
mod attestation;
mod encoding;
mod head;
mod search;

pub use accusation::{
    AccusationRefused, IndexAccusation, IndexAccusationFile, IndexFormFault, IndexPolicyEvidence,
    PostingEvidence, TermReader,
};
pub use attestation::{IndexAttestation, NotAnAttestation};
pub use encoding::IndexFileError;
pub use head::{IndexHeadEvidence, IndexHeadVerdict, ProvenHead, TrustedIndex};
pub use search::{SearchFindings, SearchProof, SearchTerm, SearchVerdict};
