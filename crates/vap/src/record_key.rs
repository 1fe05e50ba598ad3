//! HMAC commitments to values that a record does not contain in clear (readings V-40, 4.10): `hmac-sha256:` over the
//! member's name, a zero byte and the value's JCS form, under a key of that record alone.

use std::fmt;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::hmac;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The secret of a record stream, which opens every record of it. It never leaves the gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamKey([u8; 32]);

/// The key of one record: `HMAC-SHA256(stream key, seq as 8 bytes, big-endian)`.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordKey([u8; 32]);

impl StreamKey {
    /// Creates a stream key from random bytes.
    #[must_use]
    pub const fn new(secret: [u8; 32]) -> Self {
        StreamKey(secret)
    }

    /// Derives the key of the record with this sequence number.
    #[must_use]
    pub fn record(&self, seq: u64) -> RecordKey {
        RecordKey(mac(&self.0, &[&seq.to_be_bytes()]))
    }
}

impl RecordKey {
    /// Computes the commitment to a member whose value has these canonical bytes.
    #[must_use]
    pub fn commit(&self, member: &str, value: &[u8]) -> String {
        format!("hmac-sha256:{}", HEXLOWER.encode(&mac(&self.0, &[member.as_bytes(), &[0], value])))
    }

    /// Returns the key as base64url without padding, the form that the caller receives.
    #[must_use]
    pub fn to_text(&self) -> String {
        BASE64URL_NOPAD.encode(&self.0)
    }

    /// Parses a key from base64url; `None` if it is not 32 bytes.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        BASE64URL_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok().map(RecordKey)
    }
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    let mut tag = [0; 32];
    tag.copy_from_slice(context.sign().as_ref());
    tag
}

impl fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamKey(…)")
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordKey(…)")
    }
}

impl Serialize for StreamKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for StreamKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(StreamKey).ok_or_else(|| serde::de::Error::custom("32 bytes in base64url are needed here"))
    }
}
