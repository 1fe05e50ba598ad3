//! Keys of signed notes: names, key IDs, and the encoding of public keys ("vkeys").

use std::{fmt, str::FromStr};

use data_encoding::BASE64;
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::{MAX_NAME_BYTES, decode_base64, timestamped};

/// Signature types of keys (signed-note, signature types).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KeyKind {
    /// Signs the note's text: keys of logs.
    Ed25519 = 0x01,
    /// Signs the note's text and a timestamp (tlog-cosignature): keys of witnesses. See
    /// [`cosignature`](crate::cosignature).
    Cosignature = 0x04,
}

impl KeyKind {
    const fn of(number: u8) -> Option<Self> {
        match number {
            0x01 => Some(Self::Ed25519),
            0x04 => Some(Self::Cosignature),
            _ => None,
        }
    }
}

/// Name of a key: not empty, without spaces, plus signs and control characters. The key name of a log is its origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyName(String);

/// Error: the text is not a valid [`KeyName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key name is 1 to {MAX_NAME_BYTES} bytes without spaces, pluses and control characters")]
pub struct NotAName;

impl KeyName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let fits = (1..=MAX_NAME_BYTES).contains(&text.len());
        let is_forbidden = |c: char| c.is_whitespace() || c.is_ascii_control() || c == '+';
        match fits && !text.contains(is_forbidden) {
            true => Ok(Self(text.to_owned())),
            false => Err(NotAName),
        }
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Distinguishes keys with the same name. Four bytes, so too short to identify a key securely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(u32);

impl KeyId {
    /// Creates a key ID from the number in a signature line.
    pub const fn new(id: u32) -> Self {
        Self(id)
    }

    /// The key ID as a number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Computes the key ID: `SHA-256(name || 0x0A || type || key)[:4]`.
    fn of(name: &KeyName, kind: KeyKind, key: &[u8]) -> Self {
        let hash = Sha256::new()
            .chain_update(name.as_str())
            .chain_update([b'\n', kind as u8])
            .chain_update(key)
            .finalize();
        Self(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]))
    }
}

/// Writes eight lowercase hexadecimal digits.
impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Errors of parsing or creating a [`VerifierKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The text is not of the form `name+id+base64`.
    #[error("a verifier key has the form name+id+key")]
    Form,
    /// The name is not a valid [`KeyName`].
    #[error(transparent)]
    Name(#[from] NotAName),
    /// A signature type other than 0x01 (Ed25519) and 0x04 (cosignature).
    #[error("keys of type {0:#04x} are not supported")]
    Unsupported(u8),
    /// Not a point of the curve, or a weak key, for which signatures can be forged.
    #[error("not an Ed25519 public key")]
    Point,
    /// The key ID does not match name and key.
    #[error("the key's id is {computed}, not {given}")]
    Id {
        /// The key ID in the text.
        given: KeyId,
        /// The computed key ID.
        computed: KeyId,
    },
}

/// A public key that verifies signed notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: KeyName,
    id: KeyId,
    kind: KeyKind,
    key: VerifyingKey,
}

impl VerifierKey {
    /// Creates a key of [`KeyKind::Ed25519`], such as a log's. Fails with [`BadKey::Point`] for a weak key.
    pub fn ed25519(name: KeyName, key: VerifyingKey) -> Result<Self, BadKey> {
        Self::new(name, KeyKind::Ed25519, key)
    }

    /// Creates a key of [`KeyKind::Cosignature`]: a witness's. Fails with [`BadKey::Point`] for a weak key.
    pub fn cosigner(name: KeyName, key: VerifyingKey) -> Result<Self, BadKey> {
        Self::new(name, KeyKind::Cosignature, key)
    }

    fn new(name: KeyName, kind: KeyKind, key: VerifyingKey) -> Result<Self, BadKey> {
        if key.is_weak() {
            return Err(BadKey::Point);
        }
        let id = KeyId::of(&name, kind, key.as_bytes());
        Ok(Self { name, id, kind, key })
    }

    /// The key's name, which identifies its owner.
    pub const fn name(&self) -> &KeyName {
        &self.name
    }

    /// The key ID.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The signature type.
    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The Ed25519 public key.
    pub const fn verifying_key(&self) -> &VerifyingKey {
        &self.key
    }

    /// Returns `true` if `signature` (with a timestamp, for a cosignature) is a valid signature of the text by this
    /// key.
    pub(crate) fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        match self.kind {
            KeyKind::Ed25519 => self.signed(text.as_bytes(), signature),
            KeyKind::Cosignature => timestamped::split(signature)
                .is_some_and(|(time, signature)| self.signed(&timestamped::message(text, time), signature)),
        }
    }

    fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .and_then(|signature| self.key.verify_strict(message, &signature))
            .is_ok()
    }
}

/// Writes the vkey: `name+id+base64(type || key)`.
impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed = [&[self.kind as u8], self.key.as_bytes().as_slice()].concat();
        write!(f, "{}+{}+{}", self.name, self.id, BASE64.encode(&typed))
    }
}

/// Parses exactly the output of `Display`.
impl FromStr for VerifierKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        // Base64 also uses `+`: only the first two separate fields.
        let mut parts = text.splitn(3, '+');
        let mut part = || parts.next().ok_or(BadKey::Form);
        let (name, id, key) = (part()?, part()?, part()?);
        let name: KeyName = name.parse()?;
        let given = read_id(id).ok_or(BadKey::Form)?;
        let typed = decode_base64(key).ok_or(BadKey::Form)?;
        let (number, key) = typed.split_first().ok_or(BadKey::Form)?;
        let kind = KeyKind::of(*number).ok_or(BadKey::Unsupported(*number))?;
        let key = key.try_into().ok().and_then(|key| VerifyingKey::from_bytes(key).ok());
        let key = Self::new(name, kind, key.ok_or(BadKey::Point)?)?;
        match key.id {
            computed if computed == given => Ok(key),
            computed => Err(BadKey::Id { given, computed }),
        }
    }
}

fn read_id(text: &str) -> Option<KeyId> {
    let id = u32::from_str_radix(text, 16).ok().map(KeyId);
    id.filter(|id| id.to_string() == text)
}
