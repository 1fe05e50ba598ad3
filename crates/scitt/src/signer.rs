//! Signing: the trait for signers, and a signer that holds its key in memory.
//!
//! Statements, receipts and checkpoints are signed through [`Signer`], so that a hardware security module or a remote
//! KMS can replace [`SigningKey`]. Signatures have COSE form (r‖s at fixed width). ES256 signs with ring, which is
//! about four times faster than the pure Rust curve and uses a fresh random nonce; ES384 and ES512 sign with RustCrypto
//! (RFC 6979).
//!
//! Secrets are wiped when dropped, except ring's own copy of a P-256 scalar, which ring cannot wipe. The `Debug` form
//! of a [`SigningKey`] contains no secret.
//!
//! Not here: location and access rights of key files.

use std::fmt;
use std::sync::Arc;

use ed25519_dalek::Signer as _;
use ed25519_dalek::pkcs8::KeypairBytes;
use p384::elliptic_curve::Generate;
use p384::pkcs8::der::zeroize::Zeroizing;
use p384::pkcs8::{EncodePrivateKey, LineEnding, PrivateKeyInfoRef};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use thiserror::Error;
use x509_cert::der::{Decode, pem};

use crate::alg::{Algorithm, Curve};
use crate::header::Label;
use crate::key::{KeyError, PublicKey, curve_of};

/// Error of a signature that was not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignError {
    /// The system has no randomness, or the signing routine failed.
    #[error("signing failed: no randomness, or a fault in the signing routine")]
    Failed,
    /// The header names another algorithm than the signer's.
    #[error("the header names {header}, but the key signs {signer}")]
    AlgorithmMismatch {
        /// Algorithm in the header.
        header: Algorithm,
        /// Algorithm of the signer.
        signer: Algorithm,
    },
    /// The header has a value that coset cannot write, such as `undefined`.
    #[error(
        "the value of header {0} cannot be written: undefined, another simple value, or too long a number"
    )]
    Unwritable(Label),
    /// A remote or hardware signer did not answer; a retry may help.
    #[error("the signer is unavailable: {0}")]
    Unavailable(String),
}

/// A signer with one key and one algorithm.
pub trait Signer: Send + Sync {
    /// Returns the algorithm of all signatures of this signer.
    fn algorithm(&self) -> Algorithm;

    /// Returns the public key under which the signatures verify.
    fn public_key(&self) -> &PublicKey;

    /// Signs `message`. Returns r‖s at fixed width, or the 64 bytes of an Ed25519 signature.
    ///
    /// # Errors
    /// Returns a [`SignError`] if nothing was signed.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError>;
}

impl<S: Signer + ?Sized> Signer for Arc<S> {
    fn algorithm(&self) -> Algorithm {
        (**self).algorithm()
    }

    fn public_key(&self) -> &PublicKey {
        (**self).public_key()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        (**self).sign(message)
    }
}

/// A private key in memory.
pub struct SigningKey {
    algorithm: Algorithm,
    public: PublicKey,
    secret: Secret,
}

enum Secret {
    Ed25519(Box<ed25519_dalek::SigningKey>),
    P256(Box<p256::SecretKey>, Box<EcdsaKeyPair>),
    P384(Box<p384::ecdsa::SigningKey>),
    P521(Box<p521::ecdsa::SigningKey>),
}

impl SigningKey {
    /// Generates a key from the system's randomness.
    ///
    /// # Errors
    /// Returns [`SignError::Failed`] if the system has no randomness.
    pub fn generate(algorithm: Algorithm) -> Result<Self, SignError> {
        let failed = |_| SignError::Failed;
        match algorithm.curve() {
            Curve::Ed25519 => {
                let mut seed = Zeroizing::new([0; 32]);
                getrandom::fill(seed.as_mut()).map_err(|_| SignError::Failed)?;
                Self::from_ed25519_secret(ed25519_dalek::SigningKey::from_bytes(&seed))
            }
            Curve::P256 => Self::from_p256_secret(p256::SecretKey::try_generate().map_err(failed)?),
            Curve::P384 => Self::from_p384_secret(p384::SecretKey::try_generate().map_err(failed)?),
            Curve::P521 => Self::from_p521_secret(p521::SecretKey::try_generate().map_err(failed)?),
        }
        .and_then(|key| key.with_algorithm(algorithm))
        .map_err(|_| SignError::Failed)
    }

    /// Parses a PKCS#8 `PRIVATE KEY` block in PEM. The key signs with [`Algorithm::default_for`] its curve.
    ///
    /// # Errors
    /// Returns [`KeyError::Malformed`] for other blocks (an encrypted key, a SEC1 `EC PRIVATE KEY`), and the errors of
    /// [`from_pkcs8_der`](Self::from_pkcs8_der).
    pub fn from_pkcs8_pem(text: &str) -> Result<Self, KeyError> {
        let (label, der) =
            pem::decode_vec(text.as_bytes()).map_err(|error| KeyError::Malformed(format!("PEM: {error}")))?;
        let der = Zeroizing::new(der);
        match label {
            "PRIVATE KEY" => Self::from_pkcs8_der(&der),
            other => {
                Err(KeyError::Malformed(format!("PEM: expected PRIVATE KEY (PKCS#8), found {other:.40}")))
            }
        }
    }

    /// Parses a PKCS#8 private key in DER.
    ///
    /// # Errors
    /// Returns a [`KeyError`] if it is malformed or not on a supported curve.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self, KeyError> {
        let malformed = |_| KeyError::Malformed("PKCS#8 private key".into());
        let info = PrivateKeyInfoRef::from_der(der)
            .map_err(|error| KeyError::Malformed(format!("PKCS#8: {error}")))?;
        let parameters = info.algorithm.parameters_oid().ok();
        match curve_of(info.algorithm.oid, parameters.as_ref())? {
            Curve::Ed25519 => Self::from_ed25519_secret(info.try_into().map_err(malformed)?),
            Curve::P256 => Self::from_p256_secret(info.try_into().map_err(malformed)?),
            Curve::P384 => Self::from_p384_secret(info.try_into().map_err(malformed)?),
            Curve::P521 => Self::from_p521_secret(info.try_into().map_err(malformed)?),
        }
    }

    /// Creates an Ed25519 key from its 32-byte seed, for published test vectors.
    ///
    /// # Errors
    /// Never fails in practice: no seed is known to have a weak public key.
    pub fn from_ed25519_seed(seed: &[u8; 32]) -> Result<Self, KeyError> {
        Self::from_ed25519_secret(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// Encodes the key as a PKCS#8 `PRIVATE KEY` block in PEM, which is wiped when dropped.
    ///
    /// # Errors
    /// Returns [`KeyError::Malformed`] if the key cannot be encoded, which is not expected.
    pub fn to_pkcs8_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        let lines = LineEnding::LF;
        match &self.secret {
            // Without the public key, which would make it a version that OpenSSL 3.0 and Python's `cryptography` do not read.
            Secret::Ed25519(key) => {
                KeypairBytes { secret_key: key.to_bytes(), public_key: None }.to_pkcs8_pem(lines)
            }
            Secret::P256(key, _) => key.to_pkcs8_pem(lines),
            Secret::P384(key) => key.to_pkcs8_pem(lines),
            Secret::P521(key) => key.to_pkcs8_pem(lines),
        }
        .map_err(|error| KeyError::Malformed(format!("PKCS#8: {error}")))
    }

    /// Sets another algorithm of the key's curve, such as Ed25519 (-19) instead of EdDSA (-8).
    ///
    /// # Errors
    /// Returns [`KeyError::AlgorithmMismatch`] if the algorithm belongs to another curve.
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Result<Self, KeyError> {
        let curve = self.public.curve();
        if algorithm.curve() != curve {
            let algorithm = algorithm.to_cose();
            return Err(KeyError::AlgorithmMismatch { algorithm, curve });
        }
        self.algorithm = algorithm;
        Ok(self)
    }

    fn from_ed25519_secret(key: ed25519_dalek::SigningKey) -> Result<Self, KeyError> {
        let public = PublicKey::from_ed25519(key.verifying_key().as_bytes())?;
        Ok(Self::new(public, Secret::Ed25519(Box::new(key))))
    }

    fn from_p256_secret(key: p256::SecretKey) -> Result<Self, KeyError> {
        let public = PublicKey::from_sec1(Curve::P256, &key.public_key().to_sec1_bytes())?;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &Zeroizing::new(key.to_bytes()),
            public.as_bytes(),
            &SystemRandom::new(),
        )
        .map_err(|error| KeyError::Malformed(format!("P-256 secret: {error}")))?;
        Ok(Self::new(public, Secret::P256(Box::new(key), Box::new(pair))))
    }

    fn from_p384_secret(key: p384::SecretKey) -> Result<Self, KeyError> {
        let public = PublicKey::from_sec1(Curve::P384, &key.public_key().to_sec1_bytes())?;
        Ok(Self::new(public, Secret::P384(Box::new(key.into()))))
    }

    fn from_p521_secret(key: p521::SecretKey) -> Result<Self, KeyError> {
        let public = PublicKey::from_sec1(Curve::P521, &key.public_key().to_sec1_bytes())?;
        Ok(Self::new(public, Secret::P521(Box::new(key.into()))))
    }

    fn new(public: PublicKey, secret: Secret) -> Self {
        Self { algorithm: Algorithm::default_for(public.curve()), public, secret }
    }
}

impl Signer for SigningKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        match &self.secret {
            Secret::Ed25519(key) => {
                let signature = key.try_sign(message).map_err(|_| SignError::Failed)?;
                Ok(signature.to_bytes().to_vec())
            }
            Secret::P256(_, pair) => {
                let signature = pair.sign(&SystemRandom::new(), message).map_err(|_| SignError::Failed)?;
                Ok(signature.as_ref().to_vec())
            }
            Secret::P384(key) => {
                let signature: p384::ecdsa::Signature =
                    key.try_sign(message).map_err(|_| SignError::Failed)?;
                Ok(signature.to_bytes().to_vec())
            }
            Secret::P521(key) => {
                let signature: p521::ecdsa::Signature =
                    key.try_sign(message).map_err(|_| SignError::Failed)?;
                Ok(signature.to_bytes().to_vec())
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, {:?})", self.algorithm, self.public)
    }
}
