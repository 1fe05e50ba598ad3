//! Signature algorithms of certificates, which include RSA, unlike those of statements.

use p521::ecdsa::signature::Verifier as _;
use rustls_pki_types::{
    AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm as Algorithm, alg_id,
};
use webpki::ring;

/// Algorithms that a certificate may be signed with.
pub(super) static ALL: [&dyn Algorithm; 12] = [
    ring::ECDSA_P256_SHA256,
    ring::ECDSA_P256_SHA384,
    ring::ECDSA_P384_SHA256,
    ring::ECDSA_P384_SHA384,
    &EcdsaP521Sha512,
    ring::ED25519,
    ring::RSA_PKCS1_2048_8192_SHA256,
    ring::RSA_PKCS1_2048_8192_SHA384,
    ring::RSA_PKCS1_2048_8192_SHA512,
    ring::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
    ring::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
    ring::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
];

/// ECDSA on P-521, which ring does not implement.
#[derive(Debug)]
struct EcdsaP521Sha512;

impl Algorithm for EcdsaP521Sha512 {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(public_key).map_err(|_| InvalidSignature)?;
        let signature = p521::ecdsa::Signature::from_der(signature).map_err(|_| InvalidSignature)?;
        key.verify(message, &signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P521
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_SHA512
    }
}
