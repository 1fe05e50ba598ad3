//! Digests in VAP's notation: an algorithm, a colon and hexadecimal digits (reading V-17).

use std::fmt;

use data_encoding::HEXLOWER;
use jose::jcs;
use jose::json::CheckedJson;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::limits::MAX_DIGEST;

const SHA256: &str = "sha256";

/// A digest in the notation in which it was received, of any algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(Box<str>);

/// The error for a text that does not match `^[a-z0-9]+:[A-Fa-f0-9]+$`, or is longer than [`MAX_DIGEST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is an algorithm, a colon and hexadecimal digits")]
pub struct NotADigest;

impl Digest {
    /// Computes the SHA-256 digest of `bytes`: `sha256:` and lower-case hexadecimal.
    pub fn of(bytes: &[u8]) -> Digest {
        let hash = <Sha256 as sha2::Digest>::digest(bytes);
        Digest(format!("{SHA256}:{}", HEXLOWER.encode(&hash)).into())
    }

    /// Parses a digest of any algorithm and keeps its notation.
    ///
    /// # Errors
    /// [`NotADigest`] if the text has another form or is too long.
    pub fn parse(text: &str) -> Result<Digest, NotADigest> {
        let (algorithm, hex) = text.split_once(':').ok_or(NotADigest)?;
        let named = !algorithm.is_empty()
            && algorithm.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let digits = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        match named && digits && text.len() <= MAX_DIGEST {
            true => Ok(Digest(text.into())),
            false => Err(NotADigest),
        }
    }

    /// Returns `true` if both denote the same digest: the algorithms are equal, and the hexadecimal digits are equal
    /// regardless of case.
    pub fn names(&self, other: &Digest) -> bool {
        let split =
            |text: &Digest| text.0.split_once(':').map(|(a, b)| (a.to_owned(), b.to_ascii_lowercase()));
        split(self) == split(other)
    }

    /// Returns the digest as it was received.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The bytes that represent a JSON text in digests and commitments: its canonical form (RFC 8785), or the text itself
/// if a number would lose digits in that form (reading V-22, `canon: "raw"`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canon {
    /// The canonical bytes, or the bytes of the text if `raw` is set.
    pub bytes: Vec<u8>,
    /// `true` if the bytes are the received text.
    pub raw: bool,
}

impl Canon {
    /// Computes the representation of a JSON text that was checked.
    pub fn of(text: CheckedJson<'_>) -> Canon {
        match jcs::canonical_of_text(text) {
            Ok(bytes) => Canon { bytes, raw: false },
            Err(text) => Canon { bytes: text.as_bytes().to_vec(), raw: true },
        }
    }

    /// Returns the SHA-256 digest of the bytes.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

impl TryFrom<String> for Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Digest, NotADigest> {
        Digest::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.0.into()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
