//! Digests as VAP writes them: an algorithm, a colon, hexadecimal (reading V-17).

use std::fmt;

use data_encoding::HEXLOWER;
use jose::json::Checked;
use jose::{jcs, number};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::limits::MAX_DIGEST;

const SHA256: &str = "sha256";

/// A digest as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(Box<str>);

/// The text is no digest: `^[a-z0-9]+:[A-Fa-f0-9]+$`, and not too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is an algorithm, a colon and hexadecimal digits")]
pub struct NotADigest;

impl Digest {
    /// Our own digest of these bytes: `sha256:` and lower-case hexadecimal.
    pub fn of(bytes: &[u8]) -> Digest {
        let hash = <Sha256 as sha2::Digest>::digest(bytes);
        Digest(format!("{SHA256}:{}", HEXLOWER.encode(&hash)).into())
    }

    /// Takes a digest of any algorithm as it was written.
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

    /// Whether both name the same: hexadecimal in either case, the algorithm exactly.
    pub fn names(&self, other: &Digest) -> bool {
        let split =
            |text: &Digest| text.0.split_once(':').map(|(a, b)| (a.to_owned(), b.to_ascii_lowercase()));
        split(self) == split(other)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The bytes that stand for a JSON text in digests and commitments: its canonical form, or the text itself if a number in it
/// would not survive that (reading V-22: `canon: "raw"`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canon {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether they are the text as it came.
    pub raw: bool,
}

impl Canon {
    /// Of a text that was checked.
    pub fn of(text: Checked<'_>) -> Canon {
        let exact = number::first_inexact(text).is_none();
        match exact.then(|| text.value().ok()).flatten() {
            Some(value) => Canon { bytes: jcs::canonical(&value), raw: false },
            None => Canon { bytes: text.text().as_bytes().to_vec(), raw: true },
        }
    }

    /// Their digest.
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
