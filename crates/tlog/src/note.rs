//! Signed notes: a text, an empty line, and lines with signatures over the text.
//!
//! A parsed note is not authenticated: use its text only after [`Note::verify`] has found the signature of a known key.
//! Signatures of unknown keys are ignored; a single invalid signature of a known key invalidates the note.

use std::{fmt, str::FromStr};

use data_encoding::BASE64;
use ed25519_dalek::{Signer as _, SigningKey, pkcs8::DecodePrivateKey};

use crate::{
    MAX_NOTE_BYTES, MAX_SIGNATURES, decode_base64,
    key::{BadKey, KeyId, KeyKind, KeyName, VerifierKey},
};

/// Prefix of a signature line: em dash, space.
const LINE_START: &str = "\u{2014} ";
/// Length of the key ID that precedes a signature.
const ID_LEN: usize = 4;

/// Errors of parsing or assembling a [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotANote {
    /// The note is longer than [`MAX_NOTE_BYTES`].
    #[error("a note is no longer than {MAX_NOTE_BYTES} bytes")]
    TooLong,
    /// The bytes are not UTF-8.
    #[error("at byte {offset}: not UTF-8")]
    NotUtf8 {
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// The note contains a control character other than the newline.
    #[error("at byte {offset}: a control character")]
    Control {
        /// Offset of the control character.
        offset: usize,
    },
    /// The text does not end with a newline.
    #[error("the text of a note ends with a newline")]
    Unfinished,
    /// The note has no empty line, or no signature lines after the last one.
    #[error("no signature lines")]
    Unsigned,
    /// A line after the last empty line is not a signature line.
    #[error("signature line {line} is not one")]
    SignatureLine {
        /// Line number within the signature lines, from 1.
        line: usize,
    },
    /// The note has more than [`MAX_SIGNATURES`] signature lines.
    #[error("a note has no more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
}

/// Errors of [`Note::verify`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// No signature is by a known key.
    #[error("no signature of a known key")]
    NoKnownKey,
    /// A signature line names a known key and does not verify with it.
    #[error("the signature of {name}+{id} is not valid")]
    BadSignature {
        /// The key's name.
        name: KeyName,
        /// The key ID.
        id: KeyId,
    },
}

/// Error of a [`NoteSigner`], for example because its device did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the note could not be signed: {0}")]
pub struct NoteSignerError(pub String);

/// A signature line of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureLine {
    name: KeyName,
    id: KeyId,
    signature: Vec<u8>,
}

/// A signed note, not verified yet: a text and its signature lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<SignatureLine>,
}

/// Signs notes with an Ed25519 key, which may be in another process or device.
pub trait NoteSigner: Send + Sync {
    /// The public key and its name.
    fn key(&self) -> &VerifierKey;

    /// Signs a message with Ed25519: a note's text, or the message of a cosignature.
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], NoteSignerError>;
}

fn read_secret(pem: &str) -> Result<SigningKey, BadKey> {
    SigningKey::from_pkcs8_pem(pem).map_err(|_| BadKey::Form)
}

/// A [`NoteSigner`] with the signing key in memory.
pub struct LocalKey {
    key: VerifierKey,
    secret: SigningKey,
}

impl LocalKey {
    /// Creates a key of [`KeyKind::Ed25519`] with this name.
    pub fn new(name: KeyName, secret: SigningKey) -> Result<Self, BadKey> {
        let key = VerifierKey::ed25519(name, secret.verifying_key())?;
        Ok(Self { key, secret })
    }

    /// Creates a key of [`KeyKind::Cosignature`] with this name: a witness's.
    pub fn cosigner(name: KeyName, secret: SigningKey) -> Result<Self, BadKey> {
        let key = VerifierKey::cosigner(name, secret.verifying_key())?;
        Ok(Self { key, secret })
    }

    /// Parses an Ed25519 key in PKCS #8 PEM as a key of [`KeyKind::Ed25519`].
    pub fn from_pkcs8_pem(name: KeyName, pem: &str) -> Result<Self, BadKey> {
        Self::new(name, read_secret(pem)?)
    }

    /// Parses an Ed25519 key in PKCS #8 PEM as a key of [`KeyKind::Cosignature`].
    pub fn cosigner_from_pkcs8_pem(name: KeyName, pem: &str) -> Result<Self, BadKey> {
        Self::cosigner(name, read_secret(pem)?)
    }
}

impl NoteSigner for LocalKey {
    fn key(&self) -> &VerifierKey {
        &self.key
    }

    fn sign(&self, message: &[u8]) -> Result<[u8; 64], NoteSignerError> {
        Ok(self.secret.sign(message).to_bytes())
    }
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalKey").field(&self.key).finish()
    }
}

impl SignatureLine {
    /// The line for a plain Ed25519 signature.
    pub fn ed25519(key: &VerifierKey, signature: [u8; 64]) -> Self {
        Self { name: key.name().clone(), id: key.id(), signature: signature.to_vec() }
    }

    /// Name of the signing key, as claimed by the line.
    pub const fn name(&self) -> &KeyName {
        &self.name
    }

    /// ID of the signing key, as claimed by the line.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The bytes after the key ID; their format depends on the key's type.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// The line for a cosignature.
    pub(crate) fn cosignature(key: &VerifierKey, time: u64, signature: [u8; 64]) -> Self {
        let blob = [&time.to_be_bytes(), signature.as_slice()].concat();
        Self { name: key.name().clone(), id: key.id(), signature: blob }
    }

    /// Returns `true` if the line claims to be by this key; the signature is not verified.
    pub fn is_by(&self, key: &VerifierKey) -> bool {
        self.name == *key.name() && self.id == key.id()
    }
}

/// Writes the line with its newline.
impl fmt::Display for SignatureLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blob = [&self.id.get().to_be_bytes(), self.signature.as_slice()].concat();
        writeln!(f, "{LINE_START}{} {}", self.name, BASE64.encode(&blob))
    }
}

/// Parses exactly the output of `Display`.
impl FromStr for SignatureLine {
    type Err = NotANote;

    fn from_str(line: &str) -> Result<Self, NotANote> {
        let line = line.strip_suffix('\n').and_then(read_line);
        line.ok_or(NotANote::SignatureLine { line: 1 })
    }
}

impl Note {
    /// Signs a text, which must end with a newline and have no other control characters. Keys of
    /// [`KeyKind::Cosignature`] are rejected, since their signatures need a time
    /// ([`cosign`](crate::cosignature::cosign)).
    pub fn sign(text: &str, signers: &[&dyn NoteSigner]) -> Result<Self, NoteSignError> {
        let sign = |signer: &&dyn NoteSigner| {
            if signer.key().kind() != KeyKind::Ed25519 {
                return Err(NoteSignerError(format!("{} signs with a time only", signer.key().name())));
            }
            let signature = signer.sign(text.as_bytes())?;
            Ok::<_, NoteSignerError>(SignatureLine::ed25519(signer.key(), signature))
        };
        let lines = signers.iter().map(sign).collect::<Result<_, _>>()?;
        Ok(Self::from_parts(text, lines)?)
    }

    /// Assembles a note from a text and signature lines; the signatures are not verified.
    pub fn from_parts(text: &str, signatures: Vec<SignatureLine>) -> Result<Self, NotANote> {
        check_characters(text)?;
        match (text.ends_with('\n'), signatures.len()) {
            (false, _) => Err(NotANote::Unfinished),
            (_, 0) => Err(NotANote::Unsigned),
            (_, 1..=MAX_SIGNATURES) => Ok(Self { text: text.to_owned(), signatures }),
            _ => Err(NotANote::TooManySignatures),
        }
    }

    /// Parses a note; the signatures are not verified.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotANote> {
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(NotANote::TooLong);
        }
        let whole =
            std::str::from_utf8(bytes).map_err(|flaw| NotANote::NotUtf8 { offset: flaw.valid_up_to() })?;
        check_characters(whole)?;
        // The text may contain empty lines: the last empty line separates it from the signatures.
        let end = whole.rfind("\n\n").ok_or(NotANote::Unsigned)? + 1;
        let (text, lines) = (&whole[..end], &whole[end + 1..]);
        Self::from_parts(text, read_lines(lines)?)
    }

    /// The signed text. Do not trust it before [`verify`](Self::verify).
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signature lines, in the order of the note.
    pub fn signatures(&self) -> &[SignatureLine] {
        &self.signatures
    }

    /// Adds a signature line, such as a witness's, unless the note has it already.
    pub fn add(&mut self, line: SignatureLine) -> Result<(), NotANote> {
        if self.signatures.contains(&line) {
            return Ok(());
        }
        if self.signatures.len() >= MAX_SIGNATURES {
            return Err(NotANote::TooManySignatures);
        }
        self.signatures.push(line);
        Ok(())
    }

    /// Verifies the signatures by known keys; returns the keys that signed.
    pub fn verify<'k>(&self, known: &'k [VerifierKey]) -> Result<Vec<&'k VerifierKey>, NotVerified> {
        let mut signed = Vec::new();
        for key in known {
            let mut lines = self.signatures.iter().filter(|line| line.is_by(key)).peekable();
            if lines.peek().is_none() {
                continue;
            }
            if !lines.all(|line| key.verifies(&self.text, &line.signature)) {
                return Err(NotVerified::BadSignature { name: key.name().clone(), id: key.id() });
            }
            signed.push(key);
        }
        match signed.is_empty() {
            true => Err(NotVerified::NoKnownKey),
            false => Ok(signed),
        }
    }
}

/// Writes the note in its serialized form.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|line| line.fmt(f))
    }
}

/// Errors of [`Note::sign`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteSignError {
    /// The text or the number of signers is not valid for a note.
    #[error(transparent)]
    NotANote(#[from] NotANote),
    /// A key failed to sign.
    #[error(transparent)]
    Failed(#[from] NoteSignerError),
}

fn check_characters(text: &str) -> Result<(), NotANote> {
    match text.bytes().position(|byte| byte < b' ' && byte != b'\n') {
        Some(offset) => Err(NotANote::Control { offset }),
        None => Ok(()),
    }
}

fn read_lines(lines: &str) -> Result<Vec<SignatureLine>, NotANote> {
    if lines.is_empty() {
        return Err(NotANote::Unsigned);
    }
    let count = lines.matches('\n').count();
    let Some(lines) = lines.strip_suffix('\n') else {
        return Err(NotANote::SignatureLine { line: count + 1 });
    };
    if count > MAX_SIGNATURES {
        return Err(NotANote::TooManySignatures);
    }
    let numbered = (1..).zip(lines.split('\n'));
    numbered.map(|(line, text)| read_line(text).ok_or(NotANote::SignatureLine { line })).collect()
}

/// Parses a signature line without its newline.
fn read_line(line: &str) -> Option<SignatureLine> {
    let (name, blob) = line.strip_prefix(LINE_START)?.split_once(' ')?;
    let blob = decode_base64(blob)?;
    let (id, signature) = blob.split_first_chunk::<ID_LEN>()?;
    (!signature.is_empty()).then_some(SignatureLine {
        name: name.parse().ok()?,
        id: KeyId::new(u32::from_be_bytes(*id)),
        signature: signature.to_vec(),
    })
}
