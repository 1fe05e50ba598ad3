//! The `add-checkpoint` request of a log to a witness, and the witness's decision (tlog-witness v1.0.0).
//!
//! ```text
//! old <tree size of the last checkpoint that the witness has cosigned>
//! <consistency proof, one base64 hash per line>
//!
//! <the checkpoint: a signed note>
//! ```
//!
//! [`judge`] is the complete decision, as a pure function: the witness must durably save the new checkpoint of the log
//! before it sends its cosignature. Not here: HTTP and storage (`services/witness`), and the client
//! (`client::witness`).

use std::fmt;

use data_encoding::BASE64;
use merkle::verify::{self, ProofError};
use merkle::{Hash, RootHash, TreeSize};

use crate::checkpoint::{Checkpoint, NotACheckpoint, read_size};
use crate::decode_base64;
use crate::key::VerifierKey;
use crate::note::{NotANote, NotVerified, Note};

/// Maximum number of hashes in a request: sufficient for trees of 2^62 leaves.
pub const MAX_PROOF: usize = 63;
/// Content type of a 409 response, whose body is the tree size that the witness has seen.
pub const SIZE_TYPE: &str = "text/x.tlog.size";

/// The body of an `add-checkpoint` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint {
    /// The tree size from which the proof starts; 0 if the witness has seen no checkpoint.
    pub old: TreeSize,
    /// Consistency proof from `old` to the checkpoint's size. Empty if `old` is 0 or the sizes are equal.
    pub proof: Vec<Hash>,
    /// The checkpoint as signed by the log.
    pub checkpoint: Note,
}

/// Errors of parsing a request; HTTP status 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARequest {
    /// The request is not UTF-8.
    #[error("the request is not UTF-8")]
    NotUtf8,
    /// The empty line before the checkpoint is missing.
    #[error("a blank line must stand before the checkpoint")]
    Unfinished,
    /// The first line is not `old` and a tree size.
    #[error("line 1: \"old\" and a tree size in decimal expected")]
    Old,
    /// A line of the proof is not a hash in base64.
    #[error("line {0}: a hash in base64 expected")]
    Hash(usize),
    /// The proof has more than [`MAX_PROOF`] hashes.
    #[error("more than {MAX_PROOF} hashes")]
    TooLong,
    /// The part after the empty line is not a signed note.
    #[error("the checkpoint: {0}")]
    Note(#[from] NotANote),
}

/// The largest tree of a log that a witness has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenTree {
    /// The tree size.
    pub size: TreeSize,
    /// The root hash.
    pub root: RootHash,
}

/// Reasons for refusing a cosignature, with the HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CosignRefusal {
    /// 400: the note's text is not a checkpoint. 422 if it is one of the empty tree with another root.
    #[error("the checkpoint: {0}")]
    NotACheckpoint(#[from] NotACheckpoint),
    /// 400: `old` is larger than the checkpoint's size.
    #[error("the old size {old} is larger than the checkpoint's {size}")]
    OldTooLarge {
        /// The `old` size of the request.
        old: TreeSize,
        /// The checkpoint's size.
        size: TreeSize,
    },
    /// 403: no key of the log signed the checkpoint, or one of its signatures is invalid.
    #[error("the checkpoint is not signed by the log: {0}")]
    Unsigned(#[from] NotVerified),
    /// 409, with the size in the body: `old` is not the size that the witness has seen.
    #[error("the largest tree seen has size {0}")]
    Seen(TreeSize),
    /// 422: the proof does not hold, or is not empty where it must be.
    #[error("the consistency proof: {0}")]
    Unproven(#[from] ProofError),
    /// 422: the witness has seen another root of the same size. The log has forked.
    #[error("the tree of size {size} has root {given} here, and root {seen} in an earlier checkpoint")]
    Fork {
        /// The size of both trees.
        size: TreeSize,
        /// The root that the witness has seen.
        seen: RootHash,
        /// The root in the checkpoint.
        given: RootHash,
    },
}

impl CosignRefusal {
    /// The HTTP status of the response.
    pub const fn status(&self) -> u16 {
        match self {
            Self::NotACheckpoint(NotACheckpoint::EmptyRoot) => 422,
            Self::NotACheckpoint(_) | Self::OldTooLarge { .. } => 400,
            Self::Unsigned(_) => 403,
            Self::Seen(_) => 409,
            Self::Unproven(_) | Self::Fork { .. } => 422,
        }
    }
}

/// Decides whether a witness that has `seen` this tree may cosign; returns the checkpoint that it will then have seen.
///
/// The caller selects the log by the checkpoint's origin; `keys` are the keys of that log.
///
/// # Errors
/// [`CosignRefusal`]; the checks are in the order of the specification: signature, `old`, proof.
pub fn judge(
    seen: Option<SeenTree>,
    request: &AddCheckpoint,
    keys: &[VerifierKey],
) -> Result<Checkpoint, CosignRefusal> {
    request.checkpoint.verify(keys)?;
    let checkpoint = Checkpoint::parse_text(request.checkpoint.text())?;
    let (old, size) = (request.old, checkpoint.size());
    if old > size {
        return Err(CosignRefusal::OldTooLarge { old, size });
    }
    let seen = seen.unwrap_or(SeenTree { size: TreeSize::EMPTY, root: merkle::empty_root() });
    if old != seen.size {
        return Err(CosignRefusal::Seen(seen.size));
    }
    if size == seen.size && checkpoint.root() != seen.root {
        return Err(CosignRefusal::Fork { size, seen: seen.root, given: checkpoint.root() });
    }
    prove(&seen, &checkpoint, &request.proof)?;
    Ok(checkpoint)
}

/// Verifies the consistency proof. From the empty tree the proof must be empty.
fn prove(seen: &SeenTree, checkpoint: &Checkpoint, proof: &[Hash]) -> Result<(), ProofError> {
    if seen.size == TreeSize::EMPTY {
        return match proof.len() {
            0 => Ok(()),
            given => Err(ProofError::Length { given, needed: 0 }),
        };
    }
    verify::consistency(seen.size, checkpoint.size(), seen.root, checkpoint.root(), proof)
}

impl AddCheckpoint {
    /// Parses a request; nothing is verified.
    ///
    /// # Errors
    /// [`NotARequest`], with the line where possible.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotARequest> {
        let text = std::str::from_utf8(bytes).map_err(|_| NotARequest::NotUtf8)?;
        let (head, note) = text.split_once("\n\n").ok_or(NotARequest::Unfinished)?;
        let mut lines = head.split('\n');
        let old = lines.next().and_then(|line| line.strip_prefix("old ")).and_then(read_size);
        let old = old.ok_or(NotARequest::Old)?;
        if lines.clone().count() > MAX_PROOF {
            return Err(NotARequest::TooLong);
        }
        let hash = |(number, line)| read_hash(line).ok_or(NotARequest::Hash(number));
        let proof = (2..).zip(lines).map(hash).collect::<Result<_, _>>()?;
        Ok(Self { old, proof, checkpoint: Note::parse(note.as_bytes())? })
    }
}

fn read_hash(line: &str) -> Option<Hash> {
    decode_base64(line).and_then(|bytes| bytes.try_into().ok()).map(Hash::from_bytes)
}

/// Writes the request body.
impl fmt::Display for AddCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old)?;
        for hash in &self.proof {
            writeln!(f, "{}", BASE64.encode(hash.as_bytes()))?;
        }
        write!(f, "\n{}", self.checkpoint)
    }
}
