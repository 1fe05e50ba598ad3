//! Signature verification. All signatures are verified by [`PublicKey::verify`].

use ed25519_dalek::Signature as EdSignature;
use jose::jws::{Jws, JwsAlgorithm};
use p521::ecdsa::signature::Verifier as _;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, UnparsedPublicKey, VerificationAlgorithm,
};
use thiserror::Error;

use super::{KeyBytes, PublicKey};
use crate::alg::{Algorithm, Curve};

/// Error of a signature that is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The message names an algorithm that may not be used with this key.
    #[error("algorithm {algorithm} does not go with a {curve} key")]
    AlgorithmMismatch {
        /// Algorithm in the message.
        algorithm: Algorithm,
        /// Curve of the key.
        curve: Curve,
    },
    /// The signature is not r‖s at the fixed width of the curve; a DER signature, for example.
    #[error("a signature has {expected} bytes, this one {found}")]
    Length {
        /// Length of a signature on this curve, in bytes.
        expected: usize,
        /// Length of the given signature, in bytes.
        found: usize,
    },
    /// The signature does not verify under this key.
    #[error("the signature does not verify under this key")]
    Invalid,
    /// The protected header has no `alg`.
    #[error("the protected header names no algorithm")]
    NoAlgorithm,
    /// The message names an unsupported algorithm, with this COSE identifier.
    #[error("algorithm {0} is not supported")]
    UnknownAlgorithm(i64),
    /// The payload is detached and was not given.
    #[error("the payload is detached and was not given")]
    PayloadMissing,
    /// A payload was given for a message with an attached payload.
    #[error("a payload was given, but the message carries its own")]
    PayloadTwice,
}

impl PublicKey {
    /// Verifies a COSE signature (fixed width, not DER) over `message`. If this returns `Ok`, the key signed these
    /// bytes.
    ///
    /// # Errors
    /// Returns a [`SignatureError`] if the algorithm, the length or the signature itself is wrong.
    pub fn verify(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureError> {
        self.check_binding(algorithm, signature)?;
        match &self.0 {
            KeyBytes::Ed25519(key) => {
                let signature = EdSignature::from_slice(signature).map_err(|_| SignatureError::Invalid)?;
                key.verify_strict(message, &signature).map_err(|_| SignatureError::Invalid)
            }
            KeyBytes::P256(point) => by_ring(&ECDSA_P256_SHA256_FIXED, point, message, signature),
            KeyBytes::P384(point) => by_ring(&ECDSA_P384_SHA384_FIXED, point, message, signature),
            KeyBytes::P521(point) => by_p521(point, message, signature),
        }
    }

    /// Verifies the signature of a compact JWS that [`Jws::open`] has parsed.
    ///
    /// # Errors
    /// Returns the errors of [`verify`](Self::verify).
    pub fn verify_jws(&self, jws: &Jws) -> Result<(), SignatureError> {
        let algorithm = match jws.algorithm() {
            JwsAlgorithm::EdDsa | JwsAlgorithm::Ed25519 => Algorithm::EdDsa,
            JwsAlgorithm::Es256 => Algorithm::Es256,
        };
        self.verify(algorithm, jws.signing_input(), jws.signature())
    }

    fn check_binding(&self, algorithm: Algorithm, signature: &[u8]) -> Result<(), SignatureError> {
        let curve = self.curve();
        if !self.accepts(algorithm) {
            return Err(SignatureError::AlgorithmMismatch { algorithm, curve });
        }
        let (expected, found) = (curve.signature_len(), signature.len());
        if expected != found {
            return Err(SignatureError::Length { expected, found });
        }
        Ok(())
    }
}

fn by_ring(
    rule: &'static dyn VerificationAlgorithm,
    point: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Result<(), SignatureError> {
    UnparsedPublicKey::new(rule, point).verify(message, signature).map_err(|_| SignatureError::Invalid)
}

fn by_p521(point: &[u8], message: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point).map_err(|_| SignatureError::Invalid)?;
    let signature = p521::ecdsa::Signature::from_slice(signature).map_err(|_| SignatureError::Invalid)?;
    key.verify(message, &signature).map_err(|_| SignatureError::Invalid)
}
