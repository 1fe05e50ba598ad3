//! Checkpoints: a tree head as the text of a signed note (tlog-checkpoint v1.0.0).
//!
//! Lines: the log's origin, the tree's size, its root in base64, and further lines that nobody
//! audits; we read those, and never write any.

use std::{fmt, str::FromStr};

use data_encoding::{BASE64, HEXLOWER};
use merkle::{RootHash, TreeSize, empty_root};
use sha2::{Digest, Sha256};

use crate::{
    MAX_NAME_BYTES, decode_base64,
    key::{KeyName, VerifierKey},
    note::{NotANote, NotVerified, Note, NoteSigner, SignError},
};

/// The identity of a log: one line of text, which should look like a URL without its scheme.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(String);

/// The text cannot be a log's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an origin is 1 to {MAX_NAME_BYTES} bytes without control characters")]
pub struct NotAnOrigin;

impl Origin {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its SHA-256 in lowercase hex: what the log is called in the URLs of witnesses and mirrors.
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

/// A log signs with a key of its own name.
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

/// Why a text is not a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotACheckpoint {
    /// The first line.
    #[error("line 1: {0}")]
    Origin(#[from] NotAnOrigin),
    /// The second line.
    #[error("line 2: not a tree size in decimal")]
    Size,
    /// The third line.
    #[error("line 3: not 32 bytes in base64")]
    Root,
    /// The tree without leaves has one root only.
    #[error("line 3: not the root of the empty tree")]
    EmptyRoot,
    /// An empty line, or one with control characters.
    #[error("line {0}: not an extension line")]
    Extension(usize),
    /// The text does not end with a newline.
    #[error("the text does not end with a newline")]
    Unfinished,
}

/// Why a checkpoint is not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not a note.
    #[error(transparent)]
    NotANote(#[from] NotANote),
    /// The note is not signed as it must be.
    #[error(transparent)]
    NotVerified(#[from] NotVerified),
    /// The note's text is no checkpoint.
    #[error(transparent)]
    NotACheckpoint(#[from] NotACheckpoint),
    /// Another log's checkpoint.
    #[error("the checkpoint is of {given}, not of {expected}")]
    OtherLog {
        /// The origin in the checkpoint.
        given: Origin,
        /// The log asked about.
        expected: Origin,
    },
}

/// A tree head, as a log publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    origin: Origin,
    size: TreeSize,
    root: RootHash,
    extensions: Vec<String>,
}

impl Checkpoint {
    /// A checkpoint without further lines.
    pub fn new(origin: Origin, size: TreeSize, root: RootHash) -> Result<Self, NotACheckpoint> {
        if size == TreeSize::EMPTY && root != empty_root() {
            return Err(NotACheckpoint::EmptyRoot);
        }
        Ok(Self { origin, size, root, extensions: Vec::new() })
    }

    /// Reads a note's text.
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

    /// Reads a signed checkpoint of this log, once one of the keys has signed it.
    pub fn open(bytes: &[u8], log: &Origin, keys: &[VerifierKey]) -> Result<Self, Refused> {
        let note = Note::parse(bytes)?;
        note.verify(keys)?;
        let checkpoint = Self::parse_text(note.text())?;
        match &checkpoint.origin == log {
            true => Ok(checkpoint),
            false => Err(Refused::OtherLog { given: checkpoint.origin, expected: log.clone() }),
        }
    }

    /// Signs the checkpoint.
    pub fn sign(&self, signer: &dyn NoteSigner) -> Result<Note, SignError> {
        Note::sign(&self.text(), &[signer])
    }

    /// What is signed.
    pub fn text(&self) -> String {
        let root = BASE64.encode(self.root.as_bytes());
        let mut text = format!("{}\n{}\n{root}\n", self.origin, self.size);
        for line in &self.extensions {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Which log.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// How many leaves the tree has.
    pub const fn size(&self) -> TreeSize {
        self.size
    }

    /// The tree's root.
    pub const fn root(&self) -> RootHash {
        self.root
    }

    /// Further lines, which mean something to the log and its friends only.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }
}

/// Decimal, without needless zeros and signs.
pub(crate) fn read_size(line: &str) -> Option<TreeSize> {
    let size: u64 = line.parse().ok()?;
    (size.to_string() == line).then_some(TreeSize::new(size))
}

fn read_root(line: &str) -> Option<RootHash> {
    let bytes = decode_base64(line)?;
    bytes.try_into().ok().map(RootHash::from_bytes)
}
