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
//! the computation (`monitor`).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use lookup_tree::IndexHead;
use merkle::{Hash, TreeSize};
use tlog::checkpoint::{NotAnOrigin, Origin};
use tlog::key::VerifierKey;
use tlog::note::{NotANote, NotVerified, Note, NoteSignError, NoteSigner};

use crate::trust::IndexMonitors;
use crate::verdict::{Check, CheckName, Code};

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

impl IndexMonitors {
    /// Requires each of these keys. A key that is listed twice, also under another name, is one monitor.
    pub fn all(keys: &[VerifierKey]) -> Self {
        let distinct: BTreeSet<&[u8; 32]> = keys.iter().map(|key| key.verifying_key().as_bytes()).collect();
        Self { required: distinct.len(), keys: keys.iter().map(VerifierKey::to_string).collect() }
    }

    /// Checks that as many of the monitors as required have attested this head of the log with this origin. Notes about
    /// other heads, and by others, do not count.
    pub fn check(&self, notes: &[String], origin: &str, head: &IndexHead) -> Check {
        if self.keys.is_empty() {
            let detail = "the log's claim: no party that you trust has recomputed it";
            return Check::not_done(CheckName::Recomputation, Code::NoMonitor, detail);
        }
        match self.attested(notes, origin, head) {
            Ok(names) if names.len() >= self.required => {
                Check::ok(CheckName::Recomputation, format!("size {}, by {}", head.size, names.join(", ")))
            }
            Ok(names) => {
                let detail =
                    format!("{} of {} required monitors attest the head", names.len(), self.required);
                Check::not_done(CheckName::Recomputation, Code::NotAttested, detail)
            }
            Err((code, why)) => Check::failed(CheckName::Recomputation, code, why),
        }
    }

    /// Returns the names of the keys that attested the head, one name for each public key: a signature does not cover the
    /// name of its key.
    fn attested(
        &self,
        notes: &[String],
        origin: &str,
        head: &IndexHead,
    ) -> Result<Vec<String>, (Code, String)> {
        let listed: BTreeSet<&String> = self.keys.iter().collect();
        let keys: Vec<VerifierKey> = listed.into_iter().filter_map(|key| key.parse().ok()).collect();
        let mut attested: Vec<&VerifierKey> = Vec::new();
        for note in notes {
            let (attestation, note) = IndexAttestation::read(note.as_bytes())
                .map_err(|why| (Code::MalformedAttestation, why.to_string()))?;
            let signed = match note.verify(&keys) {
                Ok(signed) => signed,
                Err(NotVerified::NoKnownKey) => continue,
                Err(why) => return Err((Code::AttestationInvalid, why.to_string())),
            };
            if (attestation.origin.as_str(), attestation.head) == (origin, head.digest()) {
                attested.extend(signed);
            }
        }
        let mut counted = BTreeSet::new();
        attested.retain(|key| counted.insert(key.verifying_key().as_bytes()));
        let names = keys.iter().filter(|key| attested.contains(key)).map(|key| key.name().to_string());
        Ok(names.collect())
    }
}
