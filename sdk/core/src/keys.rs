//! Keys: signing keys as PKCS#8 in PEM, and public keys in every form that users have.

use scitt::key::read_key;
use scitt::{Algorithm, PublicKey, Signer, SigningKey};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bytes::base64url;
use crate::error::CoreError;

/// Generates a signing key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerateKey {
    /// Name of the COSE algorithm, such as `EdDSA` (the default) or `ES256`.
    algorithm: Option<String>,
}

/// Returns the public key of a signing key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicKeyOf {
    private_key: PrivateKey,
}

/// Reads a public key: PEM, DID, JWK, or COSE_Key in hexadecimal or base64url.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadKey {
    public_key: String,
}

/// A signing key as a PKCS#8 block in PEM. Its `Debug` form has no secret.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct PrivateKey(String);

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey")
    }
}

impl PrivateKey {
    /// Parses the key.
    ///
    /// # Errors
    /// A [`CoreError`] with the code `key-unusable`.
    pub fn signing_key(&self) -> Result<SigningKey, CoreError> {
        SigningKey::from_pkcs8_pem(&self.0).map_err(|error| CoreError::new("key-unusable", error))
    }
}

impl GenerateKey {
    pub(crate) fn generate(self) -> Result<Value, CoreError> {
        let name = self.algorithm.as_deref().unwrap_or("EdDSA");
        let unknown = || CoreError::new("unknown-algorithm", format!("no algorithm is named {name:?}"));
        let algorithm = Algorithm::from_name(name).ok_or_else(unknown)?;
        let key = SigningKey::generate(algorithm).map_err(|error| CoreError::new("signing-failed", error))?;
        let pem = key.to_pkcs8_pem().map_err(|error| CoreError::new("key-unusable", error))?;
        let mut described = describe(key.public_key());
        described["private_key"] = pem.as_str().into();
        Ok(described)
    }
}

impl PublicKeyOf {
    pub(crate) fn describe(self) -> Result<Value, CoreError> {
        Ok(describe(self.private_key.signing_key()?.public_key()))
    }
}

impl ReadKey {
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        public_key(&self.public_key).map(|key| describe(&key))
    }
}

/// Parses a public key.
///
/// # Errors
/// A [`CoreError`] with the code `key-unusable`.
pub fn public_key(text: &str) -> Result<PublicKey, CoreError> {
    read_key(text).map(|key| key.key).map_err(|error| CoreError::new("key-unusable", error))
}

/// Returns a key in the forms that logs, gateways and trust files use.
fn describe(key: &PublicKey) -> Value {
    json!({
        "did": key.did_key(),
        "jwk": key.to_jwk().to_value(),
        "thumbprint": key.jwk_thumbprint(),
        "pem": key.to_spki_pem(),
        "cose_key": base64url(key.to_cose_key(None, None)),
    })
}
