//! Errors of bytes that are not a well-formed Signed Statement or Receipt.

use crate::cbor;
use crate::label::Label;

/// Error for malformed input, with its byte offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct Malformed {
    /// Byte offset from the start of the input.
    pub offset: usize,
    /// Kind of error.
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

/// Reasons why a message is refused before its signature is verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedKind {
    /// The input is not CBOR that [`cbor`] accepts.
    #[error("{0}")]
    Cbor(cbor::ErrorKind),
    /// The input is larger than the limit for its kind.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The message does not begin with tag 18 (COSE_Sign1).
    #[error("expected tag 18 (COSE_Sign1)")]
    NotTag18,
    /// The tagged item is not an array of four.
    #[error("expected an array of 4 (protected, unprotected, payload, signature)")]
    NotArrayOf4,
    /// A head of the outer framing is not in its shortest form.
    #[error("length not in its shortest form")]
    NotShortest,
    /// A part of the outer framing has an indefinite length.
    #[error("indefinite length in the outer framing")]
    Indefinite,
    /// A part of the message, or the value of a label, has the wrong type.
    #[error("{what} must be {expected}")]
    Type {
        /// Part or label of the message.
        what: &'static str,
        /// Required type.
        expected: &'static str,
    },
    /// A header label or claim key is neither a 64-bit integer nor text.
    #[error("a header label must be an integer or text")]
    LabelType,
    /// A label is in both the protected and the unprotected header.
    #[error("label {0} is in both headers")]
    LabelInBothHeaders(Label),
    /// A label is in the unprotected header, although only the protected header may have it.
    #[error("label {0} must be in the protected header")]
    MustBeProtected(Label),
    /// A label that `crit` lists is not supported.
    #[error("critical label {0} is not understood")]
    CriticalUnknown(Label),
    /// A label that `crit` lists is absent from the protected header.
    #[error("critical label {0} is not in the protected header")]
    CriticalAbsent(Label),
    /// The `iss` claim is empty or too long.
    #[error("iss must have 1 to {limit} characters")]
    IssLength {
        /// Maximum number of characters, [`ISS_CHARACTERS`](crate::limits::ISS_CHARACTERS).
        limit: usize,
    },
    /// A list has too few or too many members.
    #[error("{what} must have {least} to {most} members")]
    Count {
        /// Name of the list.
        what: &'static str,
        /// Minimum number of members.
        least: usize,
        /// Maximum number of members.
        most: usize,
    },
    /// A hash envelope has a content type (label 3) together with `payload-hash-alg` (label 258).
    #[error("a hash envelope must not have a content type (label 3)")]
    ContentTypeInHashEnvelope,
    /// Label 259 or 260 is present without `payload-hash-alg` (label 258).
    #[error("label {0} has no meaning without payload-hash-alg (258)")]
    NoHashEnvelope(Label),
    /// The payload's length is not that of a digest by the algorithm in label 258.
    #[error("a hash envelope of algorithm {algorithm} has a payload of {expected} bytes, not {found}")]
    DigestLength {
        /// COSE identifier of the hash algorithm.
        algorithm: i64,
        /// Length of the algorithm's digests in bytes.
        expected: usize,
        /// Length of the payload in bytes.
        found: usize,
    },
    /// A required label is absent from the protected header.
    #[error("label {0} is missing from the protected header")]
    Missing(Label),
    /// A proof has a type that is not registered for the receipt's data structure.
    #[error("proof type is not registered for this verifiable data structure")]
    UnknownProof,
    /// The receipt has no proof.
    #[error("the receipt carries no proof")]
    NoProof,
    /// The leaf index is not below the tree size.
    #[error("leaf index {index} is not in a tree of size {size}")]
    LeafOutsideTree {
        /// Leaf index in the proof.
        index: u64,
        /// Tree size in the proof.
        size: u64,
    },
    /// No consistency proof exists between these tree sizes.
    #[error("no consistency proof leads from size {older} to size {newer}")]
    ConsistencySizes {
        /// Size of the older tree in the proof.
        older: u64,
        /// Size of the newer tree in the proof.
        newer: u64,
    },
    /// The signed tree size differs from the proof's.
    #[error("the signed tree size {signed} is not the proof's {proof}")]
    TreeSize {
        /// Tree size in the protected header.
        signed: u64,
        /// Tree size in the proof.
        proof: u64,
    },
}
