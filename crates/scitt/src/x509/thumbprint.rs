//! `x5t` (RFC 9360): the digest that pins the end-entity certificate.

use sha2::{Digest, Sha256};

use super::ChainError;

/// SHA-256 in the COSE Algorithms registry. -15 is the truncated SHA-256/64: never that one.
pub const SHA_256: i64 = -16;

/// SHA-256 over a whole DER certificate (not over its key).
pub fn sha256_thumbprint(certificate: &[u8]) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// Checks that `x5t` (its hash algorithm and value) names this DER certificate.
///
/// # Errors
/// If the hash is not SHA-256, or the digest is another certificate's.
pub fn check_thumbprint(algorithm: i64, digest: &[u8], certificate: &[u8]) -> Result<(), ChainError> {
    match algorithm {
        SHA_256 if digest == sha256_thumbprint(certificate) => Ok(()),
        SHA_256 => Err(ChainError::ThumbprintMismatch),
        other => Err(ChainError::ThumbprintHash(other)),
    }
}
