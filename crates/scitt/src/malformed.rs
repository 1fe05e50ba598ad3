//! Why bytes are not a Signed Statement or a Receipt, and where.

use crate::cbor;
use crate::header::Label;

/// Input that cannot be what it should be, with the byte at which that shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct Malformed {
    /// Offset from the start of the input.
    pub offset: usize,
    /// What is wrong there.
    pub kind: MalformedKind,
}

impl Malformed {
    pub(crate) fn at(offset: usize, kind: MalformedKind) -> Self {
        Self { offset, kind }
    }
}

impl From<cbor::Error> for Malformed {
    fn from(error: cbor::Error) -> Self {
        Self { offset: error.offset, kind: MalformedKind::Cbor(error.kind) }
    }
}

/// The ways in which a message is refused before any signature is looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedKind {
    /// Not CBOR as we read it.
    #[error("{0}")]
    Cbor(cbor::ErrorKind),
    /// Larger than any limit allows.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The most that is read.
        limit: usize,
    },
    /// The message does not begin with tag 18 (COSE_Sign1).
    #[error("expected tag 18 (COSE_Sign1)")]
    NotTag18,
    /// The tagged item is not an array of four.
    #[error("expected an array of 4 (protected, unprotected, payload, signature)")]
    NotArrayOf4,
    /// A head of the outer framing is longer than it need be.
    #[error("length not in its shortest form")]
    NotShortest,
    /// A part of the outer framing has an indefinite length.
    #[error("indefinite length in the outer framing")]
    Indefinite,
    /// A part of the message or the value of a label has the wrong type.
    #[error("{what} must be {expected}")]
    Type {
        /// Which part or label.
        what: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// A header label or claim key that is neither an integer of 64 bits nor text.
    #[error("a header label must be an integer or text")]
    LabelType,
    /// A label that is in both buckets.
    #[error("label {0} is in both headers")]
    LabelInBothHeaders(Label),
    /// A label that counts only when it is signed.
    #[error("label {0} must be in the protected header")]
    MustBeProtected(Label),
    /// A label that is critical, and that we do not process.
    #[error("critical label {0} is not understood")]
    CriticalUnknown(Label),
    /// A label that is critical, and that the protected header lacks.
    #[error("critical label {0} is not in the protected header")]
    CriticalAbsent(Label),
    /// `iss` is empty or too long.
    #[error("iss must have 1 to {limit} characters")]
    IssLength {
        /// The most characters allowed.
        limit: usize,
    },
    /// A list that is empty, or longer than we read.
    #[error("{what} must have {least} to {most} members")]
    Count {
        /// Which list.
        what: &'static str,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Content type (3) beside payload-hash-alg (258).
    #[error("a hash envelope must not have a content type (label 3)")]
    ContentTypeInHashEnvelope,
    /// Labels 259 or 260 without payload-hash-alg (258).
    #[error("label {0} has no meaning without payload-hash-alg (258)")]
    NoHashEnvelope(Label),
    /// A payload that is not a digest of the algorithm that label 258 names.
    #[error("a hash envelope of algorithm {algorithm} has a payload of {expected} bytes, not {found}")]
    DigestLength {
        /// COSE identifier of the hash algorithm.
        algorithm: i64,
        /// Bytes of its digests.
        expected: usize,
        /// Bytes of the payload.
        found: usize,
    },
    /// A required label is absent from the protected header.
    #[error("label {0} is missing from the protected header")]
    Missing(Label),
    /// A proof of a type that is not registered for the receipt's data structure.
    #[error("proof type is not registered for this verifiable data structure")]
    UnknownProof,
    /// A receipt that proves nothing.
    #[error("the receipt carries no proof")]
    NoProof,
    /// A leaf index outside the tree it is said to be in.
    #[error("leaf index {index} is not in a tree of size {size}")]
    LeafOutsideTree {
        /// The index.
        index: u64,
        /// The size.
        size: u64,
    },
    /// Sizes between which there is no consistency proof.
    #[error("no consistency proof leads from size {older} to size {newer}")]
    ConsistencySizes {
        /// Said to be older.
        older: u64,
        /// Said to be newer.
        newer: u64,
    },
    /// A signed tree size that is not the proof's.
    #[error("the signed tree size {signed} is not the proof's {proof}")]
    TreeSize {
        /// What the protected header says.
        signed: u64,
        /// What the proof says.
        proof: u64,
    },
}
