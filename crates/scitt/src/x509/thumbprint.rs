//! `x5t` (RFC 9360): the digest that identifies the end-entity certificate.

use sha2::{Digest, Sha256};

use super::ChainError;
use crate::label::Label;

/// Identifier of SHA-256 in the COSE Algorithms registry; -15 is the truncated SHA-256/64, which is not accepted.
pub const SHA_256: i64 = -16;

/// Returns SHA-256 of a complete DER certificate (not of its key).
pub fn sha256_thumbprint(certificate: &[u8]) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// Checks that `x5t`, given as hash algorithm and digest, identifies this DER certificate.
///
/// # Errors
/// Returns [`ChainError::ThumbprintHash`] if the hash is not SHA-256, or [`ChainError::ThumbprintMismatch`] if the
/// digest differs.
pub fn check_thumbprint(algorithm: &Label, digest: &[u8], certificate: &[u8]) -> Result<(), ChainError> {
    match algorithm {
        Label::Int(SHA_256) if digest == sha256_thumbprint(certificate) => Ok(()),
        Label::Int(SHA_256) => Err(ChainError::ThumbprintMismatch),
        other => Err(ChainError::ThumbprintHash(other.clone())),
    }
}
