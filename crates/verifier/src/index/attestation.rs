//! Attestations: notes in which a monitor states that it computed a head of an index from the statements of the log.
//!
//! A proof ties the log to a claim about its index, and only a computation from all statements shows that the claim is
//! right. A monitor that made it signs a note (C2SP signed-note) with an Ed25519 key under its own name:
//!
//! ```text
//! tabellion-index/v1
//! <origin of the log>
//! <number of indexed leaves in decimal>
//! <SHA-256 of the payload of the head, in base64>
//! ```
//!
//! No checkpoint has this form, because its second line is a number and its third one has 32 bytes in base64. Not here:
//! the computation (`monitor`), and how many monitors a reader requires.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use lookup_tree::IndexHead;
use merkle::{Hash, TreeSize};
use tlog::checkpoint::{NotAnOrigin, Origin};
use tlog::note::{NotANote, Note, NoteSignError, NoteSigner};

/// First line of an attestation.
const FORMAT: &str = "tabellion-index/v1";

/// The statement of a monitor that it computed a head of the index of a log. Nothing is verified by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexAttestation {
    /// Origin of the log.
    pub origin: Origin,
    /// Number of leaves that the head indexes.
    pub size: TreeSize,
    /// SHA-256 of the payload of the head.
    pub head: Hash,
}

/// Error: bytes that are not an attestation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAttestation {
    /// Not a signed note.
    #[error(transparent)]
    Note(#[from] NotANote),
    /// The text has another number of lines, or its first line is not `tabellion-index/v1`.
    #[error("the text is not four lines that begin with {FORMAT}")]
    Form,
    /// The second line is not an origin.
    #[error("line 2: {0}")]
    Origin(#[from] NotAnOrigin),
    /// The third line is not a number of leaves in decimal.
    #[error("line 3: not a number of leaves in decimal")]
    Size,
    /// The fourth line is not a hash in base64.
    #[error("line 4: not 32 bytes in base64")]
    Head,
}

impl IndexAttestation {
    /// Creates the attestation of a head of this log.
    pub fn of(origin: Origin, head: &IndexHead) -> Self {
        Self { origin, size: head.size, head: head.digest() }
    }

    /// Signs the attestation.
    ///
    /// # Errors
    /// Returns a [`NoteSignError`] if the key does not sign notes (it is a witness's), or the signer fails.
    pub fn sign(&self, signer: &dyn NoteSigner) -> Result<Note, NoteSignError> {
        Note::sign(&self.to_string(), &[signer])
    }

    /// Reads a signed note. Its signatures are not verified.
    ///
    /// # Errors
    /// Returns a [`NotAnAttestation`] for another note, or for bytes that are not one.
    pub fn read(note: &[u8]) -> Result<(Self, Note), NotAnAttestation> {
        let note = Note::parse(note)?;
        Ok((note.text().parse()?, note))
    }
}

/// Writes the text of the note.
impl fmt::Display for IndexAttestation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, size, head } = self;
        writeln!(f, "{FORMAT}\n{origin}\n{size}\n{}", BASE64.encode(head.as_bytes()))
    }
}

/// Parses exactly the output of `Display`.
impl FromStr for IndexAttestation {
    type Err = NotAnAttestation;

    fn from_str(text: &str) -> Result<Self, NotAnAttestation> {
        let lines: Vec<&str> = text.strip_suffix('\n').ok_or(NotAnAttestation::Form)?.split('\n').collect();
        let [FORMAT, origin, size, head] = lines[..] else { return Err(NotAnAttestation::Form) };
        let digest = BASE64.decode(head.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        let attestation = Self {
            origin: origin.parse()?,
            size: size.parse().map(TreeSize::new).map_err(|_| NotAnAttestation::Size)?,
            head: digest.map(Hash::from_bytes).ok_or(NotAnAttestation::Head)?,
        };
        // Numbers and base64 have other spellings, which a signer does not write.
        match attestation.to_string() == text {
            true => Ok(attestation),
            false => Err(NotAnAttestation::Form),
        }
    }
}
