//! Inclusion proofs with their checkpoint, in one text file (C2SP tlog-proof).
//!
//! ```text
//! c2sp.org/tlog-proof@v1
//! extra <base64>            (optional)
//! index <leaf index>
//! <hash in base64>          (from the leaf to the root, one per line)
//!
//! <the checkpoint: a signed note>
//! ```
//!
//! The checkpoint signs the tree size, so that, unlike in a bare inclusion proof, the leaf index is authenticated.

use std::fmt::{self, Write};
use std::str::FromStr;

use data_encoding::BASE64;
use merkle::{Hash, LeafHash, LeafIndex, verify};

use crate::checkpoint::{Checkpoint, CheckpointError, NotACheckpoint, Origin};
use crate::decode_base64;
use crate::key::VerifierKey;
use crate::note::{NotANote, Note};

/// First line of a proof.
const MAGIC: &str = "c2sp.org/tlog-proof@v1";
/// Maximum length of a path, that of a tree of 2^64 leaves.
const MAX_PATH: usize = 64;
/// Maximum length of the extra data, in base64 characters.
const MAX_EXTRA: usize = 64 << 10;

/// An inclusion proof with its checkpoint: verifiable with the leaf and the trusted keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlogProof {
    extra: Option<Vec<u8>>,
    index: LeafIndex,
    path: Vec<Hash>,
    note: Note,
}

/// Errors of parsing a [`TlogProof`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAProof {
    /// The first line is not the format's.
    #[error("line 1 is not {MAGIC:?}")]
    Magic,
    /// A line is malformed.
    #[error("line {line}: {expected} expected")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Description of the expected line.
        expected: &'static str,
    },
    /// The path has more than 64 hashes.
    #[error("more than {MAX_PATH} hashes")]
    TooLong,
    /// The part after the empty line is not a signed note.
    #[error("the checkpoint: {0}")]
    Note(#[from] NotANote),
}

/// Errors of [`TlogProof::verify`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotProven {
    /// The checkpoint is not a verified one of this log.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The path does not lead to the checkpoint's root.
    #[error("the proof does not lead to the checkpoint's root: {0}")]
    Path(#[from] verify::ProofError),
}

impl TlogProof {
    /// Creates a proof without extra data; `checkpoint` is a serialized signed note.
    pub fn new(index: LeafIndex, path: Vec<Hash>, checkpoint: &[u8]) -> Result<Self, NotAProof> {
        Ok(Self { extra: None, index, path, note: Note::parse(checkpoint)? })
    }

    /// The leaf's index.
    pub const fn index(&self) -> LeafIndex {
        self.index
    }

    /// The sibling hashes from the leaf to the root.
    pub fn path(&self) -> &[Hash] {
        &self.path
    }

    /// Application-specific data, not authenticated by the proof.
    pub fn extra(&self) -> Option<&[u8]> {
        self.extra.as_deref()
    }

    /// The checkpoint as a signed note.
    pub const fn note(&self) -> &Note {
        &self.note
    }

    /// Parses the checkpoint without verifying its signatures.
    pub fn checkpoint(&self) -> Result<Checkpoint, NotACheckpoint> {
        Checkpoint::parse_text(self.note.text())
    }

    /// Verifies that the leaf is at the proof's index in a tree signed by one of `keys` for `log`; returns the
    /// checkpoint.
    pub fn verify(
        &self,
        leaf: LeafHash,
        log: &Origin,
        keys: &[VerifierKey],
    ) -> Result<Checkpoint, NotProven> {
        let checkpoint = Checkpoint::open(self.note.to_string().as_bytes(), log, keys)?;
        verify::inclusion(leaf, self.index, checkpoint.size(), &self.path, checkpoint.root())?;
        Ok(checkpoint)
    }
}

impl fmt::Display for TlogProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MAGIC}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", BASE64.encode(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        for hash in &self.path {
            writeln!(f, "{}", BASE64.encode(hash.as_bytes()))?;
        }
        f.write_char('\n')?;
        fmt::Display::fmt(&self.note, f)
    }
}

/// Parses exactly the output of `Display`.
impl FromStr for TlogProof {
    type Err = NotAProof;

    fn from_str(text: &str) -> Result<Self, NotAProof> {
        let (head, note) = text
            .split_once("\n\n")
            .ok_or(NotAProof::Line { line: 1, expected: "a blank line after the proof" })?;
        let mut lines = (1..).zip(head.split('\n')).peekable();
        if lines.next().map(|(_, line)| line) != Some(MAGIC) {
            return Err(NotAProof::Magic);
        }
        let extra = lines
            .next_if(|(_, text)| text.starts_with("extra "))
            .map(|line| read(line, extra))
            .transpose()?;
        let first = lines.next().unwrap_or((2, ""));
        let index = read(first, index)?;
        let path = lines.map(|line| read(line, hash)).collect::<Result<Vec<Hash>, _>>()?;
        if path.len() > MAX_PATH {
            return Err(NotAProof::TooLong);
        }
        Ok(Self { extra, index, path, note: Note::parse(note.as_bytes())? })
    }
}

fn read<T>((line, text): (usize, &str), field: fn(&str) -> Result<T, &'static str>) -> Result<T, NotAProof> {
    field(text).map_err(|expected| NotAProof::Line { line, expected })
}

fn extra(line: &str) -> Result<Vec<u8>, &'static str> {
    let data = line.strip_prefix("extra ").filter(|data| data.len() <= MAX_EXTRA);
    data.and_then(decode_base64).ok_or("extra data in base64")
}

fn index(line: &str) -> Result<LeafIndex, &'static str> {
    let digits = line.strip_prefix("index ").unwrap_or_default();
    let index: Option<u64> = digits.parse().ok();
    index
        .filter(|index| index.to_string() == digits)
        .map(LeafIndex::new)
        .ok_or("\"index\" and a decimal number")
}

fn hash(line: &str) -> Result<Hash, &'static str> {
    let bytes = decode_base64(line).and_then(|bytes| bytes.try_into().ok());
    bytes.map(Hash::from_bytes).ok_or("a hash in base64")
}
