//! A leaf's proof and the checkpoint it leads to, in one text file (C2SP tlog-proof).
//!
//! ```text
//! c2sp.org/tlog-proof@v1
//! extra <base64>            (optional)
//! index <leaf index>
//! <hash in base64>          (from the leaf to the root, one a line)
//!
//! <the checkpoint: a signed note>
//! ```
//!
//! The checkpoint signs the tree size, so here, unlike in a bare inclusion proof, the index means something.

use std::fmt::{self, Write};
use std::str::FromStr;

use data_encoding::BASE64;
use merkle::{Hash, LeafHash, LeafIndex, verify};

use crate::checkpoint::{Checkpoint, NotACheckpoint, Origin, Refused};
use crate::decode_base64;
use crate::key::VerifierKey;
use crate::note::{NotANote, Note};

/// The first line.
const MAGIC: &str = "c2sp.org/tlog-proof@v1";
/// A tree of 2^64 leaves has no longer path.
const MAX_PATH: usize = 64;
/// The longest extra data that is read, in base64.
const MAX_EXTRA: usize = 64 << 10;

/// A proof with all that is needed to check it, but for the leaf and the keys one trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlogProof {
    extra: Option<Vec<u8>>,
    index: LeafIndex,
    path: Vec<Hash>,
    note: Note,
}

/// The text is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAProof {
    /// The first line is another.
    #[error("line 1 is not {MAGIC:?}")]
    Magic,
    /// A line is not what should stand there.
    #[error("line {line}: {expected} expected")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What should have been there.
        expected: &'static str,
    },
    /// More hashes than a path can have.
    #[error("more than {MAX_PATH} hashes")]
    TooLong,
    /// What follows the blank line is no note.
    #[error("the checkpoint: {0}")]
    Note(#[from] NotANote),
}

/// The proof does not prove it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotProven {
    /// The checkpoint is not one of this log.
    #[error(transparent)]
    Checkpoint(#[from] Refused),
    /// The path does not lead to the checkpoint's root.
    #[error("the proof does not lead to the checkpoint's root: {0}")]
    Path(#[from] verify::ProofError),
}

impl TlogProof {
    /// A proof without extra data, for a checkpoint as it is signed.
    pub fn new(index: LeafIndex, path: Vec<Hash>, checkpoint: &[u8]) -> Result<Self, NotAProof> {
        Ok(Self { extra: None, index, path, note: Note::parse(checkpoint)? })
    }

    /// The leaf's index.
    pub const fn index(&self) -> LeafIndex {
        self.index
    }

    /// Hashes from the leaf to the root.
    pub fn path(&self) -> &[Hash] {
        &self.path
    }

    /// Data of the application's, which nothing here vouches for.
    pub fn extra(&self) -> Option<&[u8]> {
        self.extra.as_deref()
    }

    /// The checkpoint as it is signed.
    pub const fn note(&self) -> &Note {
        &self.note
    }

    /// What the checkpoint says; who signed it is not checked here.
    pub fn checkpoint(&self) -> Result<Checkpoint, NotACheckpoint> {
        Checkpoint::parse_text(self.note.text())
    }

    /// Checks that this leaf is where the proof says, in a tree that one of the keys has signed for this log.
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

/// Reads what `Display` writes, and nothing else.
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
