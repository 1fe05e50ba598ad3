//! What a log asks of a witness, and how a witness decides (tlog-witness v1.0.0, `add-checkpoint`).
//!
//! ```text
//! old <the size that the witness is believed to have seen>
//! <consistency proof, a hash in base64 a line>
//!
//! <the checkpoint: a signed note>
//! ```
//!
//! [`judge`] is the whole decision, and pure: the witness keeps what it has seen of each log, durably, before its
//! cosignature leaves. Not here: HTTP and keeping (`services/witness`), and who asks (`client::witness`).

use std::fmt;

use data_encoding::BASE64;
use merkle::verify::{self, ProofError};
use merkle::{Hash, RootHash, TreeSize};

use crate::checkpoint::{Checkpoint, NotACheckpoint, read_size};
use crate::decode_base64;
use crate::key::VerifierKey;
use crate::note::{NotANote, NotVerified, Note};

/// The most hashes in a request: a tree of 2^62 leaves needs no more.
pub const MAX_PROOF: usize = 63;
/// The content type of a 409, whose body is the size that the witness has seen.
pub const SIZE_TYPE: &str = "text/x.tlog.size";

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint {
    /// The tree size from which the proof starts; 0 before the witness has seen anything.
    pub old: TreeSize,
    /// That the checkpoint's tree extends the old one. Empty for `old` 0 and for an equal size.
    pub proof: Vec<Hash>,
    /// The checkpoint, as the log signed it.
    pub checkpoint: Note,
}

/// Why bytes are no request: 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARequest {
    /// Not UTF-8.
    #[error("the request is not UTF-8")]
    NotUtf8,
    /// No blank line before the checkpoint.
    #[error("a blank line must stand before the checkpoint")]
    Unfinished,
    /// The first line.
    #[error("line 1: \"old\" and a tree size in decimal expected")]
    Old,
    /// A line of the proof.
    #[error("line {0}: a hash in base64 expected")]
    Hash(usize),
    /// More hashes than a proof can have.
    #[error("more than {MAX_PROOF} hashes")]
    TooLong,
    /// What follows the blank line.
    #[error("the checkpoint: {0}")]
    Note(#[from] NotANote),
}

/// The largest tree that a witness has seen of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its size.
    pub size: TreeSize,
    /// Its root.
    pub root: RootHash,
}

/// Why a witness does not cosign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The note's text is no checkpoint: 400; or one of the empty tree with another root: 422.
    #[error("the checkpoint: {0}")]
    NotACheckpoint(#[from] NotACheckpoint),
    /// The proof would start behind the checkpoint: 400.
    #[error("the old size {old} is larger than the checkpoint's {size}")]
    OldTooLarge {
        /// As asked.
        old: TreeSize,
        /// The checkpoint's.
        size: TreeSize,
    },
    /// No key of the log signed it, or a signature of one is bad: 403.
    #[error("the checkpoint is not signed by the log: {0}")]
    Unsigned(#[from] NotVerified),
    /// The proof starts at another size than the one seen: 409, with that size.
    #[error("the largest tree seen has size {0}")]
    Seen(TreeSize),
    /// The proof does not hold, or there must be none: 422.
    #[error("the consistency proof: {0}")]
    Unproven(#[from] ProofError),
    /// A tree of the size seen, with another root: 422. The log has forked.
    #[error("the tree of size {size} was seen with root {seen}, and is given with root {given}")]
    Fork {
        /// The size of both.
        size: TreeSize,
        /// The root seen.
        seen: RootHash,
        /// The root in the checkpoint.
        given: RootHash,
    },
}

impl Refusal {
    /// The HTTP status that says it.
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

/// Decides whether a witness that has `seen` this much of a log may cosign, and gives what it will have seen then.
///
/// The caller has found the log by the checkpoint's origin; `keys` are that log's.
///
/// # Errors
/// In the order of the specification: the signature, then `old`, then the proof.
pub fn judge(
    seen: Option<Seen>,
    request: &AddCheckpoint,
    keys: &[VerifierKey],
) -> Result<Checkpoint, Refusal> {
    request.checkpoint.verify(keys)?;
    let checkpoint = Checkpoint::parse_text(request.checkpoint.text())?;
    let (old, size) = (request.old, checkpoint.size());
    if old > size {
        return Err(Refusal::OldTooLarge { old, size });
    }
    let seen = seen.unwrap_or(Seen { size: TreeSize::EMPTY, root: merkle::empty_root() });
    if old != seen.size {
        return Err(Refusal::Seen(seen.size));
    }
    if size == seen.size && checkpoint.root() != seen.root {
        return Err(Refusal::Fork { size, seen: seen.root, given: checkpoint.root() });
    }
    prove(&seen, &checkpoint, &request.proof)?;
    Ok(checkpoint)
}

/// From the empty tree nothing can be proven, and nothing has to be.
fn prove(seen: &Seen, checkpoint: &Checkpoint, proof: &[Hash]) -> Result<(), ProofError> {
    if seen.size == TreeSize::EMPTY {
        return match proof.len() {
            0 => Ok(()),
            given => Err(ProofError::Length { given, needed: 0 }),
        };
    }
    verify::consistency(seen.size, checkpoint.size(), seen.root, checkpoint.root(), proof)
}

impl AddCheckpoint {
    /// Reads a request. Nothing is verified.
    ///
    /// # Errors
    /// If it is not one, naming the line.
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

/// The request as it is sent.
impl fmt::Display for AddCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old)?;
        for hash in &self.proof {
            writeln!(f, "{}", BASE64.encode(hash.as_bytes()))?;
        }
        write!(f, "\n{}", self.checkpoint)
    }
}
