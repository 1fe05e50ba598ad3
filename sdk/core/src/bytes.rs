//! Byte strings and hashes in requests.

use data_encoding::BASE64URL_NOPAD;
use merkle::Hash;
use serde::{Deserialize, Deserializer, de::Error};

/// Bytes that are encoded at once, a multiple of 3: in WebAssembly, [`data_encoding::Encoding::encode`] panics above 8 MiB.
const PART_BYTES: usize = 3 << 20;

/// A byte string; in JSON unpadded base64url.
#[derive(Debug, Default)]
pub struct ByteString(pub Vec<u8>);

impl ByteString {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ByteString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes());
        bytes.map(Self).map_err(|error| D::Error::custom(format!("no unpadded base64url: {error}")))
    }
}

/// A SHA-256 hash; in JSON hexadecimal.
#[derive(Debug)]
pub struct HashText(pub Hash);

impl<'de> Deserialize<'de> for HashText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// Encodes bytes for an answer.
pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().chunks(PART_BYTES).map(|part| BASE64URL_NOPAD.encode(part)).collect()
}
