//! Checkpoints: a tree head as the text of a signed note (tlog-checkpoint v1.0.0).
//!
//! Lines: the log's origin, the tree size, the root in base64, and optional extension lines, which are not
//! authenticated by audits. Extension lines are parsed, and never written for a new checkpoint.

use std::{fmt, str::FromStr};

use data_encoding::{BASE64, HEXLOWER};
use merkle::{RootHash, TreeSize, empty_root};
use sha2::{Digest, Sha256};

use crate::{
    MAX_NAME_BYTES, decode_base64,
    key::{KeyName, VerifierKey},
    note::{NotANote, NotVerified, Note, NoteSignError, NoteSigner},
};

/// The identity of a log: one line of text, which should look like a URL without its scheme.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(String);

/// Error: the text is not a valid [`Origin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an origin is 1 to {MAX_NAME_BYTES} bytes without control characters")]
pub struct NotAnOrigin;

impl Origin {
    /// The origin as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// SHA-256 of the origin in lowercase hex: the log's name in URLs of witnesses and mirrors (tlog-witness).
    pub fn digest(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(&self.0))
    }
}

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let fits = (1..=MAX_NAME_BYTES).contains(&text.len());
        match fits && !text.contains(|c: char| c.is_ascii_control()) {
            true => Ok(Self(text.to_owned())),
            false => Err(NotAnOrigin),
        }
    }
}

/// The origin of a log that signs with a key of the same name.
impl From<KeyName> for Origin {
    fn from(name: KeyName) -> Self {
        Self(name.as_str().to_owned())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Errors of parsing a checkpoint's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotACheckpoint {
    /// The first line is not a valid [`Origin`].
    #[error("line 1: {0}")]
    Origin(#[from] NotAnOrigin),
    /// The second line is not a tree size in decimal.
    #[error("line 2: not a tree size in decimal")]
    Size,
    /// The third line is not a root hash in base64.
    #[error("line 3: not 32 bytes in base64")]
    Root,
    /// Size 0 with a root other than the empty tree's.
    #[error("line 3: not the root of the empty tree")]
    EmptyRoot,
    /// An extension line is empty or has control characters.
    #[error("line {0}: not an extension line")]
    Extension(usize),
    /// The text does not end with a newline.
    #[error("the text does not end with a newline")]
    Unfinished,
}

/// Errors of [`Checkpoint::open`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The bytes are not a signed note.
    #[error(transparent)]
    NotANote(#[from] NotANote),
    /// The note has no valid signature by a known key.
    #[error(transparent)]
    NotVerified(#[from] NotVerified),
    /// The note's text is not a checkpoint.
    #[error(transparent)]
    NotACheckpoint(#[from] NotACheckpoint),
    /// The checkpoint's origin is that of another log.
    #[error("the checkpoint is of {given}, not of {expected}")]
    OtherLog {
        /// The origin in the checkpoint.
        given: Origin,
        /// The expected origin.
        expected: Origin,
    },
}

/// A checkpoint: a log's tree head as published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    origin: Origin,
    size: TreeSize,
    root: RootHash,
    extensions: Vec<String>,
}

impl Checkpoint {
    /// Creates a checkpoint without extension lines. Fails with [`NotACheckpoint::EmptyRoot`] for size 0 and another
    /// root.
    pub fn new(origin: Origin, size: TreeSize, root: RootHash) -> Result<Self, NotACheckpoint> {
        if size == TreeSize::EMPTY && root != empty_root() {
            return Err(NotACheckpoint::EmptyRoot);
        }
        Ok(Self { origin, size, root, extensions: Vec::new() })
    }

    /// Parses the text of a note.
    pub fn parse_text(text: &str) -> Result<Self, NotACheckpoint> {
        let text = text.strip_suffix('\n').ok_or(NotACheckpoint::Unfinished)?;
        let mut lines = text.split('\n');
        let mut line = || lines.next().unwrap_or_default();
        let origin = line().parse()?;
        let size = read_size(line()).ok_or(NotACheckpoint::Size)?;
        let root = read_root(line()).ok_or(NotACheckpoint::Root)?;
        let mut checkpoint = Self::new(origin, size, root)?;
        for (number, line) in (4..).zip(lines) {
            if line.is_empty() || line.contains(|c: char| c.is_ascii_control()) {
                return Err(NotACheckpoint::Extension(number));
            }
            checkpoint.extensions.push(line.to_owned());
        }
        Ok(checkpoint)
    }

    /// Parses a signed checkpoint and verifies that one of `keys` signed it and that its origin is `log`.
    pub fn open(bytes: &[u8], log: &Origin, keys: &[VerifierKey]) -> Result<Self, CheckpointError> {
        let note = Note::parse(bytes)?;
        note.verify(keys)?;
        let checkpoint = Self::parse_text(note.text())?;
        match &checkpoint.origin == log {
            true => Ok(checkpoint),
            false => Err(CheckpointError::OtherLog { given: checkpoint.origin, expected: log.clone() }),
        }
    }

    /// Signs the checkpoint as a note.
    pub fn sign(&self, signer: &dyn NoteSigner) -> Result<Note, NoteSignError> {
        Note::sign(&self.text(), &[signer])
    }

    /// The signed text, in the format of tlog-checkpoint.
    pub fn text(&self) -> String {
        let root = BASE64.encode(self.root.as_bytes());
        let mut text = format!("{}\n{}\n{root}\n", self.origin, self.size);
        for line in &self.extensions {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The log's origin.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The tree size: the number of leaves.
    pub const fn size(&self) -> TreeSize {
        self.size
    }

    /// The root hash.
    pub const fn root(&self) -> RootHash {
        self.root
    }

    /// Extension lines; their meaning is specific to the log.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }
}

/// Parses a decimal number without leading zeros or signs.
pub(crate) fn read_size(line: &str) -> Option<TreeSize> {
    let size: u64 = line.parse().ok()?;
    (size.to_string() == line).then_some(TreeSize::new(size))
}

fn read_root(line: &str) -> Option<RootHash> {
    let bytes = decode_base64(line)?;
    bytes.try_into().ok().map(RootHash::from_bytes)
}
