//! Certificates in headers (RFC 9360). They are untrusted until [`crate::x509`] finds a path to a trusted root.

use bytes::Bytes;

use super::HEADER_LIMITS;
use super::value::wrong_type;
use crate::cbor::{self, Item, ItemWriter, Value};
use crate::label::Label;
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

/// A certificate chain in DER, end entity first; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct X5Chain(Vec<Bytes>);

impl X5Chain {
    /// Returns the DER certificates, end entity first.
    pub fn certificates(&self) -> &[Bytes] {
        &self.0
    }

    /// Returns the end-entity certificate, whose key signed the message.
    pub fn end_entity(&self) -> &Bytes {
        &self.0[0]
    }

    /// Returns the chain as `COSE_X509`: a byte string for one certificate, an array for several.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = ItemWriter::new();
        if self.0.len() > 1 {
            writer.array(self.0.len());
        }
        self.0.iter().for_each(|certificate| {
            writer.bytes(certificate);
        });
        writer.into_bytes()
    }

    /// Parses the encoding of [`encode`](Self::encode), in which logs store a chain separately from its statement.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::read(&cbor::parse(bytes, HEADER_LIMITS)?)
    }

    /// Creates a chain of 1 to [`CERTIFICATES`](limits::CERTIFICATES) DER certificates; `None` for any other number.
    pub fn new(certificates: Vec<Bytes>) -> Option<Self> {
        (1..=limits::CERTIFICATES).contains(&certificates.len()).then_some(Self(certificates))
    }

    pub(crate) fn read(item: &Item<'_>) -> Result<Self, Malformed> {
        let certificate = |item: &Item<'_>| match item.value.as_bytes() {
            Some(der) if !der.is_empty() => Ok(Bytes::copy_from_slice(der)),
            _ => Err(wrong_type(item, "a certificate in x5chain (33)", "a byte string that is not empty")),
        };
        let Some(certificates) = item.value.as_array() else {
            return certificate(item).map(|only| Self(vec![only]));
        };
        if !(2..=limits::CERTIFICATES).contains(&certificates.len()) {
            let kind =
                MalformedKind::Count { what: "an x5chain array (33)", least: 2, most: limits::CERTIFICATES };
            return Err(Malformed::at(item.offset, kind));
        }
        certificates.iter().map(certificate).collect::<Result<_, _>>().map(Self)
    }
}

/// Hash of a DER certificate (`COSE_CertHash`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertHash {
    /// COSE identifier of the hash algorithm: -16 is SHA-256; -15 is SHA-256 truncated to 64 bits.
    pub algorithm: Label,
    /// Digest of the certificate.
    pub hash: Bytes,
}

impl CertHash {
    pub(crate) fn read(item: &Item<'_>) -> Result<Self, Malformed> {
        let wrong = || wrong_type(item, "x5t (34)", "an array of a hash algorithm and a byte string");
        let Some([algorithm, hash]) = item.value.as_array() else {
            return Err(wrong());
        };
        let algorithm = Label::read(algorithm).map_err(|_| wrong())?;
        let hash = hash.value.as_bytes().map(Bytes::copy_from_slice).ok_or_else(wrong)?;
        Ok(Self { algorithm, hash })
    }

    /// Returns the hash as CBOR.
    pub fn to_value(&self) -> Value<'static> {
        Value::array([self.algorithm.to_value(), self.hash.to_vec().into()])
    }
}
