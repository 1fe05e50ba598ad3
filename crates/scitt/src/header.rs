//! The protected header of a statement or receipt, typed.
//!
//! Labels of RFC 9052, 9360 (x5chain, x5t), 9596 (typ), 9597 (CWT claims) and 9995 (hash envelope) are read
//! and their types checked; any other label is kept and can be asked for. The bytes stay as they were signed.
//!
//! A header that is well-formed COSE but lacks what RFC 9943 requires still parses, because receipts and
//! statements of other ecosystems are worth inspecting; [`Header::require_scitt`] asks for the rest.
//!
//! Not here: whether the key a header names is to be trusted, and the unprotected header, which is
//! never trusted for anything a certificate does not prove itself.

mod claims;
mod envelope;
mod label;
mod read;
mod x5;

use std::ops::Range;

use bytes::Bytes;

pub use claims::Claims;
pub use envelope::HashEnvelope;
pub(crate) use envelope::digest_length;
pub(crate) use label::wrong_type;
pub use label::{ContentType, Label, labels};
pub(crate) use read::read_entries;
pub use x5::{CertHash, X5Chain};

use crate::alg::Algorithm;
use crate::cbor::{self, Value};
use crate::key::SignatureError;
use crate::limits;

pub(crate) const HEADER_LIMITS: cbor::Limits =
    cbor::Limits { depth: limits::HEADER_DEPTH, items: limits::HEADER_ITEMS };

/// A protected header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    bytes: Bytes,
    entries: Vec<(Label, Range<usize>)>,
    alg: Option<i64>,
    content_type: Option<ContentType>,
    kid: Option<Bytes>,
    claims: Option<Claims>,
    typ: Option<ContentType>,
    x5chain: Option<X5Chain>,
    x5t: Option<CertHash>,
    hash_envelope: Option<HashEnvelope>,
}

impl Header {
    /// The encoded map, verbatim; empty when the header is.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// `alg` as the header gives it, known to us or not.
    pub fn alg(&self) -> Option<i64> {
        self.alg
    }

    /// The signature algorithm, if it is one we speak.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.alg.and_then(Algorithm::from_cose)
    }

    /// What the payload is; a hash envelope has none.
    pub fn content_type(&self) -> Option<&ContentType> {
        self.content_type.as_ref()
    }

    /// Names the key; a hint, never proof.
    pub fn kid(&self) -> Option<&Bytes> {
        self.kid.as_ref()
    }

    /// The CWT claims under label 15.
    pub fn claims(&self) -> Option<&Claims> {
        self.claims.as_ref()
    }

    /// What the whole message is (RFC 9596).
    pub fn typ(&self) -> Option<&ContentType> {
        self.typ.as_ref()
    }

    /// The certificate chain, end entity first.
    pub fn x5chain(&self) -> Option<&X5Chain> {
        self.x5chain.as_ref()
    }

    /// The hash of the end entity's certificate.
    pub fn x5t(&self) -> Option<&CertHash> {
        self.x5t.as_ref()
    }

    /// What the digest in the payload is of, when this is a hash envelope (RFC 9995).
    pub fn hash_envelope(&self) -> Option<&HashEnvelope> {
        self.hash_envelope.as_ref()
    }

    /// Every label, in the order of the header.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        self.entries.iter().map(|(label, _)| label)
    }

    /// Whether the header has a label.
    pub fn contains(&self, label: &Label) -> bool {
        self.entries.iter().any(|(candidate, _)| candidate == label)
    }

    /// Whether the header has no label at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn signature_algorithm(&self) -> Result<Algorithm, SignatureError> {
        let id = self.alg.ok_or(SignatureError::NoAlgorithm)?;
        Algorithm::from_cose(id).ok_or(SignatureError::UnknownAlgorithm(id))
    }

    /// The value under a label. Offsets in it count from the value's first byte.
    pub fn get(&self, label: &Label) -> Option<Value<'_>> {
        let (_, span) = self.entries.iter().find(|(candidate, _)| candidate == label)?;
        let item = cbor::parse(self.bytes.get(span.clone())?, HEADER_LIMITS).ok()?;
        Some(item.value)
    }

    /// What RFC 9943, section 6, demands of a Signed Statement's (and a Receipt's) header.
    pub fn require_scitt(&self) -> Result<Identity<'_>, Incomplete> {
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
        Ok(Identity { iss, sub })
    }
}

/// Who says it, and about what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The issuer.
    pub iss: &'a str,
    /// The subject.
    pub sub: &'a str,
}

/// What a protected header lacks to be one of RFC 9943.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// No `alg` (label 1).
    #[error("the protected header has no alg (label 1)")]
    Algorithm,
    /// No CWT claims (label 15); the unprotected header does not count.
    #[error("the protected header has no CWT claims (label 15)")]
    Claims,
    /// No `iss` among the claims.
    #[error("the CWT claims have no iss (15, 1)")]
    Iss,
    /// No `sub` among the claims.
    #[error("the CWT claims have no sub (15, 2)")]
    Sub,
    /// Nothing names the key.
    #[error("the protected header has neither kid (4) nor x5chain (33) nor x5t (34)")]
    KeyName,
    /// With a certificate, an `iss` that has a colon must be a URI.
    #[error("iss is not a URI, though the statement is signed by certificate")]
    IssNotUri,
}

impl Incomplete {
    /// The missing piece as a path of labels: `1`, `15`, `15/1`, `15/2`, `4`.
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
