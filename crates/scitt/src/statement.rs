//! Signed Statements (RFC 9943, section 6): the bytes that an issuer signed, unchanged.
//!
//! The form that is hashed, stored and served is called **S**: tag 18, an array of four, the protected header verbatim,
//! an empty unprotected header, the payload or nil, and the signature. S is made by replacing the span of the
//! unprotected header; nothing is re-encoded. A Transparent Statement and its statement therefore have the same S, and
//! a signature over an unusual but well-formed header stays valid.
//!
//! Not here: which keys to trust, and the meaning of a payload (`registration`).

mod twin;
mod unprotected;

use std::ops::Range;

use bytes::Bytes;
use merkle::EntryDigest;

use crate::frame::{self, EMPTY_MAP, Sign1Frame};
use crate::header::{Header, Label, X5Chain, digest_length};
use crate::key::{PublicKey, SignatureError};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

use unprotected::Unprotected;

/// A parsed Signed Statement; parsing does not verify the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedStatement {
    bytes: Bytes,
    digest: EntryDigest,
    header: Header,
    payload: Option<Range<usize>>,
    signature: Range<usize>,
    unprotected: Unprotected,
}

impl SignedStatement {
    /// Parses a Signed Statement or Transparent Statement.
    ///
    /// # Errors
    /// Returns [`Malformed`] with the byte offset of the first mistake. The labels that RFC 9943 requires are checked
    /// by [`Header::require_scitt`], not here.
    pub fn parse(input: impl Into<Bytes>) -> Result<Self, Malformed> {
        Self::parse_bytes(input.into())
    }

    fn parse_bytes(input: Bytes) -> Result<Self, Malformed> {
        let frame = Sign1Frame::read(&input, limits::TRANSPARENT_BYTES)?;
        let bytes = with_empty_unprotected(&input, &frame);
        let limit = limits::STATEMENT_BYTES;
        if bytes.len() > limit {
            return Err(Malformed::at(limit, MalformedKind::TooLarge { limit }));
        }
        let header = Header::read(&bytes, frame.protected.clone(), &[])?;
        let unprotected = Unprotected::read(&frame.unprotected, &input, &header)?;
        // The protected header comes first, so that its span is the same in input and S. The later spans move up.
        let moved = frame.rest.start - (frame.unprotected.offset + 1);
        let up = |span: Range<usize>| span.start - moved..span.end - moved;
        let statement = Self {
            header,
            payload: frame.payload.map(up),
            signature: up(frame.signature),
            unprotected,
            digest: EntryDigest::of(&bytes),
            bytes,
        };
        statement.check_digest_length(statement.payload(), frame.rest.start)?;
        Ok(statement)
    }

    /// Returns S, the form that is hashed, stored and served.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns SHA-256 of S: the log's entry, whose hexadecimal form is the entry ID.
    pub fn digest(&self) -> EntryDigest {
        self.digest
    }

    /// Returns the digest of S with the other encoding of the same ECDSA signature, (r, n - s), which can be computed
    /// without the key. `None` if the signature is not ECDSA or cannot verify.
    pub fn twin(&self) -> Option<EntryDigest> {
        let algorithm = self.header.algorithm()?;
        let signature = twin::of(algorithm, self.signature())?;
        let mut bytes = self.bytes.to_vec();
        bytes[self.signature.clone()].copy_from_slice(&signature);
        Some(EntryDigest::of(&bytes))
    }

    /// Returns the protected header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the payload, or `None` if it is detached. The payload of a hash envelope is the digest.
    pub fn payload(&self) -> Option<&[u8]> {
        self.payload.clone().map(|span| &self.bytes[span])
    }

    /// Returns `true` if the payload is detached, thus sent separately.
    pub fn is_detached(&self) -> bool {
        self.payload.is_none()
    }

    /// Returns the signature.
    pub fn signature(&self) -> &[u8] {
        &self.bytes[self.signature.clone()]
    }

    /// Returns the certificate chain in the unprotected header. It is not part of S, so that a log must store it
    /// separately for audits.
    pub fn unprotected_x5chain(&self) -> Option<&X5Chain> {
        self.unprotected.x5chain.as_ref()
    }

    /// Returns the attached receipts (label 394), unverified and in their original encoding.
    pub fn receipts(&self) -> &[Bytes] {
        &self.unprotected.receipts
    }

    /// Returns the encoded value of any other label in the unprotected header. It is neither signed nor part of S: it
    /// may be a reason to refuse a statement, never a reason to admit one.
    pub fn unprotected(&self, label: impl Into<Label>) -> Option<&[u8]> {
        let label = label.into();
        let found = self.unprotected.others.iter().find(|(other, _)| *other == label);
        found.map(|(_, value)| value.as_ref())
    }

    /// Returns the bytes that the signature covers (`Sig_structure`).
    ///
    /// # Errors
    /// Returns [`SignatureError::PayloadMissing`] if the payload is detached and not given, and
    /// [`SignatureError::PayloadTwice`] if it is attached and also given.
    pub fn sig_structure(&self, detached: Option<&[u8]>) -> Result<Vec<u8>, SignatureError> {
        let payload = match (self.payload(), detached) {
            (Some(payload), None) | (None, Some(payload)) => payload,
            (None, None) => return Err(SignatureError::PayloadMissing),
            (Some(_), Some(_)) => return Err(SignatureError::PayloadTwice),
        };
        let header = &self.header;
        Ok(frame::sig_structure(header.bytes(), header.is_empty(), payload))
    }

    /// Verifies the signature with this key and the algorithm in the protected header.
    ///
    /// # Errors
    /// Returns a [`SignatureError`] if the signature does not verify.
    pub fn verify_with(&self, key: &PublicKey, detached: Option<&[u8]>) -> Result<(), SignatureError> {
        let algorithm = self.header.signature_algorithm()?;
        key.verify(algorithm, &self.sig_structure(detached)?, self.signature())
    }

    /// Checks that a detached payload has the digest length of the hash envelope's algorithm.
    ///
    /// # Errors
    /// Returns [`MalformedKind::DigestLength`] if this is a hash envelope and the length differs. The offset is that of
    /// the absent payload in S.
    pub fn check_detached(&self, payload: &[u8]) -> Result<(), Malformed> {
        self.check_digest_length(Some(payload), self.signature.start)
    }

    fn check_digest_length(&self, payload: Option<&[u8]>, offset: usize) -> Result<(), Malformed> {
        let (Some(payload), Some(envelope)) = (payload, self.header.hash_envelope()) else {
            return Ok(());
        };
        let (algorithm, found) = (envelope.algorithm, payload.len());
        match digest_length(algorithm) {
            Some(expected) if expected != found => {
                Err(Malformed::at(offset, MalformedKind::DigestLength { algorithm, expected, found }))
            }
            _ => Ok(()),
        }
    }
}

/// Creates S from a message. If the unprotected header is already `A0`, the input is S.
fn with_empty_unprotected(input: &Bytes, frame: &Sign1Frame<'_>) -> Bytes {
    let unprotected = frame.unprotected.span();
    if input[unprotected.clone()] == EMPTY_MAP {
        return input.clone();
    }
    [&input[..unprotected.start], &EMPTY_MAP, &input[frame.rest.clone()]].concat().into()
}
