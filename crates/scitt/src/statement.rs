//! Signed Statements (RFC 9943, section 6): the bytes an issuer signed, kept as they came.
//!
//! What is hashed, stored and served is **S**: tag 18, an array of four, the protected header verbatim, an
//! empty unprotected header, the payload or nil, the signature. S is made by replacing the span of the
//! unprotected header and never by encoding anything again, so a Transparent Statement and its statement
//! have one S, and a signature over an unusual but well-formed header stays valid.
//!
//! Not here: which keys to trust, and what a payload means (`registration`).

mod twin;
mod unprotected;

use std::ops::Range;

use bytes::Bytes;
use merkle::EntryDigest;

use crate::frame::{self, EMPTY_MAP, Frame};
use crate::header::{Header, Label, X5Chain, digest_length};
use crate::key::{PublicKey, SignatureError};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

use unprotected::Unprotected;

/// A Signed Statement that parsed; nothing is said about its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedStatement {
    bytes: Bytes,
    header: Header,
    payload: Option<Range<usize>>,
    signature: Range<usize>,
    unprotected: Unprotected,
}

impl SignedStatement {
    /// Reads a statement, transparent or not.
    ///
    /// # Errors
    /// With the byte offset of the first thing that is wrong. Whether RFC 9943's required labels are there is
    /// asked with [`Header::require_scitt`].
    pub fn parse(input: impl Into<Bytes>) -> Result<Self, Malformed> {
        Self::parse_bytes(input.into())
    }

    fn parse_bytes(input: Bytes) -> Result<Self, Malformed> {
        let frame = Frame::read(&input, limits::STATEMENT_BYTES)?;
        let bytes = with_empty_unprotected(&input, &frame);
        let header = Header::read(&bytes, frame.protected.clone(), &[])?;
        let unprotected = Unprotected::read(&frame.unprotected, &input, &header)?;
        // The protected header comes first, so its span is the same in both; what follows moved up.
        let moved = frame.rest.start - (frame.unprotected.offset + 1);
        let up = |span: Range<usize>| span.start - moved..span.end - moved;
        let statement = Self {
            header,
            payload: frame.payload.map(up),
            signature: up(frame.signature),
            unprotected,
            bytes,
        };
        statement.check_digest_length(statement.payload(), frame.rest.start)?;
        Ok(statement)
    }

    /// S: what is hashed, stored and served.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// SHA-256 of S: the log's entry, and in hexadecimal the entry ID.
    pub fn digest(&self) -> EntryDigest {
        EntryDigest::of(&self.bytes)
    }

    /// The digest of S with the other encoding of the same ECDSA signature, (r, n - s), which anyone can make.
    /// None when the signature is not ECDSA's, or not one that could verify.
    pub fn twin(&self) -> Option<EntryDigest> {
        let algorithm = self.header.algorithm()?;
        let signature = twin::of(algorithm, self.signature())?;
        let mut bytes = self.bytes.to_vec();
        bytes[self.signature.clone()].copy_from_slice(&signature);
        Some(EntryDigest::of(&bytes))
    }

    /// The protected header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The payload, unless it is detached. For a hash envelope this is the digest.
    pub fn payload(&self) -> Option<&[u8]> {
        self.payload.clone().map(|span| &self.bytes[span])
    }

    /// Whether the payload travels separately.
    pub fn is_detached(&self) -> bool {
        self.payload.is_none()
    }

    /// The signature.
    pub fn signature(&self) -> &[u8] {
        &self.bytes[self.signature.clone()]
    }

    /// The certificate chain that came unprotected: not in S, but an auditor will need it.
    pub fn unprotected_x5chain(&self) -> Option<&X5Chain> {
        self.unprotected.x5chain.as_ref()
    }

    /// The receipts that came attached, each encoded as it came, unchecked.
    pub fn receipts(&self) -> &[Bytes] {
        &self.unprotected.receipts
    }

    /// The encoded value of any other label of the unprotected header that the statement came with. Anybody may have put
    /// it there, and it is not in S: it may be a reason to refuse, never one to admit.
    pub fn unprotected(&self, label: impl Into<Label>) -> Option<&[u8]> {
        let label = label.into();
        let found = self.unprotected.others.iter().find(|(other, _)| *other == label);
        found.map(|(_, value)| value.as_ref())
    }

    /// The bytes the signature covers.
    ///
    /// # Errors
    /// When the payload is detached and not given, or given although the statement has its own.
    pub fn sig_structure(&self, detached: Option<&[u8]>) -> Result<Vec<u8>, SignatureError> {
        let payload = match (self.payload(), detached) {
            (Some(payload), None) | (None, Some(payload)) => payload,
            (None, None) => return Err(SignatureError::PayloadMissing),
            (Some(_), Some(_)) => return Err(SignatureError::PayloadTwice),
        };
        let header = &self.header;
        Ok(frame::sig_structure(header.bytes(), header.is_empty(), payload))
    }

    /// Checks the signature with this key and the algorithm that the protected header names.
    ///
    /// # Errors
    /// When the signature proves nothing; see [`SignatureError`].
    pub fn verify_with(&self, key: &PublicKey, detached: Option<&[u8]>) -> Result<(), SignatureError> {
        let algorithm = self.header.signature_algorithm()?;
        key.verify(algorithm, &self.sig_structure(detached)?, self.signature())
    }

    /// Checks that a detached payload has the length that a hash envelope's algorithm gives.
    ///
    /// # Errors
    /// When this is a hash envelope and the length is another. The offset is that of the absent payload in S.
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

/// S out of a message: its own bytes when the unprotected header is `A0` already.
fn with_empty_unprotected(input: &Bytes, frame: &Frame<'_>) -> Bytes {
    let unprotected = frame.unprotected.span();
    if input[unprotected.clone()] == EMPTY_MAP {
        return input.clone();
    }
    [&input[..unprotected.start], &EMPTY_MAP, &input[frame.rest.clone()]].concat().into()
}
