//! Signed notes: a text, an empty line, and lines with signatures over the text.
//!
//! A note that was parsed says nothing yet: its text is to be used once [`Note::verify`] has
//! found the signature of a known key. Signatures of unknown keys are ignored; one bad signature
//! of a known key makes the whole note bad.

use std::{fmt, str::FromStr};

use data_encoding::BASE64;
use ed25519_dalek::{Signer as _, SigningKey, pkcs8::DecodePrivateKey};

use crate::{
    MAX_NOTE_BYTES, MAX_SIGNATURES, decode_base64,
    key::{BadKey, KeyId, KeyKind, KeyName, VerifierKey},
};

/// What a signature line starts with: em dash, space.
const LINE_START: &str = "\u{2014} ";
/// The length of the key id in front of a signature.
const ID_LEN: usize = 4;

/// Why bytes are not a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotANote {
    /// More than [`MAX_NOTE_BYTES`].
    #[error("a note is no longer than {MAX_NOTE_BYTES} bytes")]
    TooLong,
    /// Not UTF-8.
    #[error("at byte {offset}: not UTF-8")]
    NotUtf8 {
        /// Where.
        offset: usize,
    },
    /// A control character other than the newline.
    #[error("at byte {offset}: a control character")]
    Control {
        /// Where.
        offset: usize,
    },
    /// The text does not end with a newline.
    #[error("the text of a note ends with a newline")]
    Unfinished,
    /// No empty line, or nothing but a newline follows the last one.
    #[error("no signature lines")]
    Unsigned,
    /// A line after the last empty line is no signature line.
    #[error("signature line {line} is not one")]
    SignatureLine {
        /// Counted from 1.
        line: usize,
    },
    /// More than [`MAX_SIGNATURES`].
    #[error("a note has no more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
}

/// Why a note is not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// No known key signed it.
    #[error("no signature of a known key")]
    NoKnownKey,
    /// A signature that claims to be a known key's is not.
    #[error("the signature of {name}+{id} is not valid")]
    BadSignature {
        /// The key's name.
        name: KeyName,
        /// The key's id.
        id: KeyId,
    },
}

/// The key could not sign: it is elsewhere and did not answer, for instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the note could not be signed: {0}")]
pub struct SignFailed(pub String);

/// One signature of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureLine {
    name: KeyName,
    id: KeyId,
    signature: Vec<u8>,
}

/// A text with signatures that nobody checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<SignatureLine>,
}

/// Signs notes with an Ed25519 key, which may live in another process or device.
pub trait NoteSigner: Send + Sync {
    /// The public half, with the name under which it signs.
    fn key(&self) -> &VerifierKey;

    /// The Ed25519 signature over the bytes: a note's text, or what a cosignature says of it.
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignFailed>;
}

fn read_secret(pem: &str) -> Result<SigningKey, BadKey> {
    SigningKey::from_pkcs8_pem(pem).map_err(|_| BadKey::Form)
}

/// A signing key in memory.
pub struct LocalKey {
    key: VerifierKey,
    secret: SigningKey,
}

impl LocalKey {
    /// Gives a key a name.
    pub fn new(name: KeyName, secret: SigningKey) -> Result<Self, BadKey> {
        let key = VerifierKey::ed25519(name, secret.verifying_key())?;
        Ok(Self { key, secret })
    }

    /// Gives a key for cosignatures a name: a witness's.
    pub fn cosigner(name: KeyName, secret: SigningKey) -> Result<Self, BadKey> {
        let key = VerifierKey::cosigner(name, secret.verifying_key())?;
        Ok(Self { key, secret })
    }

    /// Reads an Ed25519 key in PKCS #8 and gives it a name.
    pub fn from_pkcs8_pem(name: KeyName, pem: &str) -> Result<Self, BadKey> {
        Self::new(name, read_secret(pem)?)
    }

    /// The same for a key for cosignatures.
    pub fn cosigner_from_pkcs8_pem(name: KeyName, pem: &str) -> Result<Self, BadKey> {
        Self::cosigner(name, read_secret(pem)?)
    }
}

impl NoteSigner for LocalKey {
    fn key(&self) -> &VerifierKey {
        &self.key
    }

    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignFailed> {
        Ok(self.secret.sign(message).to_bytes())
    }
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalKey").field(&self.key).finish()
    }
}

impl SignatureLine {
    /// The line of a plain Ed25519 signature.
    pub fn ed25519(key: &VerifierKey, signature: [u8; 64]) -> Self {
        Self { name: key.name().clone(), id: key.id(), signature: signature.to_vec() }
    }

    /// Who is said to have signed.
    pub const fn name(&self) -> &KeyName {
        &self.name
    }

    /// With which key.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// What follows the key id; what it means is known to whoever knows the key.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// The line of a cosignature.
    pub(crate) fn cosignature(key: &VerifierKey, time: u64, signature: [u8; 64]) -> Self {
        let blob = [&time.to_be_bytes(), signature.as_slice()].concat();
        Self { name: key.name().clone(), id: key.id(), signature: blob }
    }

    /// Whether the line claims to be this key's.
    pub fn is_by(&self, key: &VerifierKey) -> bool {
        self.name == *key.name() && self.id == key.id()
    }
}

/// The line, with its newline.
impl fmt::Display for SignatureLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blob = [&self.id.get().to_be_bytes(), self.signature.as_slice()].concat();
        writeln!(f, "{LINE_START}{} {}", self.name, BASE64.encode(&blob))
    }
}

/// Reads what `Display` writes, and nothing else.
impl FromStr for SignatureLine {
    type Err = NotANote;

    fn from_str(line: &str) -> Result<Self, NotANote> {
        let line = line.strip_suffix('\n').and_then(read_line);
        line.ok_or(NotANote::SignatureLine { line: 1 })
    }
}

impl Note {
    /// Signs a text, which ends with a newline and has no other control characters. Not for keys of witnesses: what they
    /// say has a time ([`cosign`](crate::cosignature::cosign)).
    pub fn sign(text: &str, signers: &[&dyn NoteSigner]) -> Result<Self, SignError> {
        let sign = |signer: &&dyn NoteSigner| {
            if signer.key().kind() != KeyKind::Ed25519 {
                return Err(SignFailed(format!("{} signs with a time only", signer.key().name())));
            }
            let signature = signer.sign(text.as_bytes())?;
            Ok::<_, SignFailed>(SignatureLine::ed25519(signer.key(), signature))
        };
        let lines = signers.iter().map(sign).collect::<Result<_, _>>()?;
        Ok(Self::from_parts(text, lines)?)
    }

    /// Puts a text and its signatures together.
    pub fn from_parts(text: &str, signatures: Vec<SignatureLine>) -> Result<Self, NotANote> {
        check_characters(text)?;
        match (text.ends_with('\n'), signatures.len()) {
            (false, _) => Err(NotANote::Unfinished),
            (_, 0) => Err(NotANote::Unsigned),
            (_, 1..=MAX_SIGNATURES) => Ok(Self { text: text.to_owned(), signatures }),
            _ => Err(NotANote::TooManySignatures),
        }
    }

    /// Reads a note. Nothing is verified.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotANote> {
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(NotANote::TooLong);
        }
        let whole =
            std::str::from_utf8(bytes).map_err(|flaw| NotANote::NotUtf8 { offset: flaw.valid_up_to() })?;
        check_characters(whole)?;
        // Texts have empty lines too: the last one separates.
        let end = whole.rfind("\n\n").ok_or(NotANote::Unsigned)? + 1;
        let (text, lines) = (&whole[..end], &whole[end + 1..]);
        Self::from_parts(text, read_lines(lines)?)
    }

    /// The signed text. Not to be believed before the note is verified.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures, as they stand in the note.
    pub fn signatures(&self) -> &[SignatureLine] {
        &self.signatures
    }

    /// Adds a signature, of a witness for instance, unless the note has it.
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

    /// Checks the signatures of the known keys; gives those keys that signed.
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

/// The note as it is served.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|line| line.fmt(f))
    }
}

/// Why there is no signed note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The text or the number of signers does not make a note.
    #[error(transparent)]
    NotANote(#[from] NotANote),
    /// A key did not sign.
    #[error(transparent)]
    Failed(#[from] SignFailed),
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

/// A signature line without its newline.
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
