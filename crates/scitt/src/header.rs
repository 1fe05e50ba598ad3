//! The protected header of a statement or receipt, parsed.
//!
//! The labels of RFC 9052, 9360 (x5chain, x5t), 9596 (typ), 9597 (CWT claims) and 9995 (hash envelope) are read and
//! their types checked. [`Header::get`] returns any other label. The signed bytes are kept unchanged.
//!
//! A header that is well-formed COSE but lacks labels that RFC 9943 requires is still parsed, so that receipts and
//! statements of other ecosystems can be inspected; [`Header::require_scitt`] checks the required labels.
//!
//! Not here: whether the key that a header names is trusted; and the unprotected header, which is trusted for nothing
//! but certificates, as these prove themselves.

mod claims;
mod entries;
mod envelope;
mod read;
mod value;
mod x5;

use std::ops::Range;

use bytes::Bytes;

pub use claims::CwtClaims;
pub(crate) use entries::read_entries;
pub use envelope::HashEnvelope;
pub(crate) use envelope::digest_length;
pub use value::ContentType;
pub(crate) use value::wrong_type;
pub use x5::{CertHash, X5Chain};

pub use crate::label::{Label, labels};

use crate::alg::Algorithm;
use crate::cbor::{self, Value};
use crate::key::SignatureError;
use crate::limits;

pub(crate) const HEADER_LIMITS: cbor::Limits =
    cbor::Limits { depth: limits::HEADER_DEPTH, items: limits::HEADER_ITEMS };

/// A parsed protected header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    bytes: Bytes,
    entries: Vec<(Label, Range<usize>)>,
    alg: Option<i64>,
    content_type: Option<ContentType>,
    kid: Option<Bytes>,
    claims: Option<CwtClaims>,
    typ: Option<ContentType>,
    x5chain: Option<X5Chain>,
    x5t: Option<CertHash>,
    hash_envelope: Option<HashEnvelope>,
}

impl Header {
    /// Returns the encoded map, as signed; empty if the header is a byte string of length 0.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the integer under `alg` (label 1), supported or not.
    pub fn alg(&self) -> Option<i64> {
        self.alg
    }

    /// Returns the signature algorithm, if `alg` names a supported one.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.alg.and_then(Algorithm::from_cose)
    }

    /// Returns the content type of the payload (label 3); a hash envelope has none.
    pub fn content_type(&self) -> Option<&ContentType> {
        self.content_type.as_ref()
    }

    /// Returns the key identifier, `kid` (label 4): a hint which key to try, never a proof.
    pub fn kid(&self) -> Option<&Bytes> {
        self.kid.as_ref()
    }

    /// Returns the CWT claims (label 15).
    pub fn claims(&self) -> Option<&CwtClaims> {
        self.claims.as_ref()
    }

    /// Returns the issuer, the claim `iss`.
    pub fn iss(&self) -> Option<&str> {
        self.claims.as_ref()?.iss()
    }

    /// Returns the subject, the claim `sub`.
    pub fn sub(&self) -> Option<&str> {
        self.claims.as_ref()?.sub()
    }

    /// Returns the time of issue, the claim `iat`, in Unix seconds without fraction.
    pub fn iat(&self) -> Option<i64> {
        self.claims.as_ref()?.iat()
    }

    /// Returns the type of the whole message, `typ` (label 16, RFC 9596).
    pub fn typ(&self) -> Option<&ContentType> {
        self.typ.as_ref()
    }

    /// Returns the certificate chain, `x5chain` (label 33), end entity first.
    pub fn x5chain(&self) -> Option<&X5Chain> {
        self.x5chain.as_ref()
    }

    /// Returns the hash of the end-entity certificate, `x5t` (label 34).
    pub fn x5t(&self) -> Option<&CertHash> {
        self.x5t.as_ref()
    }

    /// Returns the hash algorithm and preimage of the digest in the payload, if this is a hash envelope (RFC 9995).
    pub fn hash_envelope(&self) -> Option<&HashEnvelope> {
        self.hash_envelope.as_ref()
    }

    /// Returns all labels, in the order of the header.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        self.entries.iter().map(|(label, _)| label)
    }

    /// Returns `true` if the header has this label.
    pub fn contains(&self, label: &Label) -> bool {
        self.entries.iter().any(|(candidate, _)| candidate == label)
    }

    /// Returns `true` if the header has no labels.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn signature_algorithm(&self) -> Result<Algorithm, SignatureError> {
        let id = self.alg.ok_or(SignatureError::NoAlgorithm)?;
        Algorithm::from_cose(id).ok_or(SignatureError::UnknownAlgorithm(id))
    }

    /// Returns the value under a label. Its item offsets count from the value's first byte.
    pub fn get(&self, label: &Label) -> Option<Value<'_>> {
        let (_, span) = self.entries.iter().find(|(candidate, _)| candidate == label)?;
        let item = cbor::parse(self.bytes.get(span.clone())?, HEADER_LIMITS).ok()?;
        Some(item.value)
    }

    /// Checks the labels that RFC 9943, section 6, requires in the header of a Signed Statement or Receipt, and returns
    /// issuer and subject.
    ///
    /// # Errors
    /// Returns the first [`Incomplete`] requirement.
    pub fn require_scitt(&self) -> Result<IssuerAndSubject<'_>, Incomplete> {
        self.alg.ok_or(Incomplete::Algorithm)?;
        let claims = self.claims.as_ref().ok_or(Incomplete::Claims)?;
        let iss = claims.iss().ok_or(Incomplete::Iss)?;
        let sub = claims.sub().ok_or(Incomplete::Sub)?;
        let by_certificate = self.x5chain.is_some() || self.x5t.is_some();
        if self.kid.is_none() && !by_certificate {
            return Err(Incomplete::KeyName);
        }
        if by_certificate && !claims::is_string_or_uri(iss) {
            return Err(Incomplete::IssNotUri);
        }
        Ok(IssuerAndSubject { iss, sub })
    }
}

/// Issuer and subject of a statement or receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuerAndSubject<'a> {
    /// Issuer: the `iss` claim.
    pub iss: &'a str,
    /// Subject: the `sub` claim.
    pub sub: &'a str,
}

/// Requirement of RFC 9943 that a protected header does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// No `alg` (label 1).
    #[error("the protected header has no alg (label 1)")]
    Algorithm,
    /// No CWT claims (label 15); the unprotected header does not count.
    #[error("the protected header has no CWT claims (label 15)")]
    Claims,
    /// No `iss` among the CWT claims.
    #[error("the CWT claims have no iss (15, 1)")]
    Iss,
    /// No `sub` among the CWT claims.
    #[error("the CWT claims have no sub (15, 2)")]
    Sub,
    /// No label that identifies the key.
    #[error("the protected header has neither kid (4) nor x5chain (33) nor x5t (34)")]
    KeyName,
    /// An `iss` that contains a colon and is not an URI, in a statement signed by certificate.
    #[error("iss is not a URI, though the statement is signed by certificate")]
    IssNotUri,
}

impl Incomplete {
    /// Returns the missing label as a path: `1`, `15`, `15/1`, `15/2` or `4`.
    pub fn label_path(&self) -> &'static str {
        match self {
            Self::Algorithm => "1",
            Self::Claims => "15",
            Self::Iss | Self::IssNotUri => "15/1",
            Self::Sub => "15/2",
            Self::KeyName => "4",
        }
    }
}
