//! One public key of an issuer's set.

use data_encoding::BASE64URL_NOPAD;
use jose::jwk::PublicJwk;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use scitt::{Algorithm, PublicKey};
use serde_json::{Map, Value};

use super::algorithm::TokenAlgorithm;

/// One public key of the set.
#[derive(Clone, Debug)]
pub struct TokenKey {
    /// The key's `kid`.
    pub kid: Option<String>,
    alg: Option<String>,
    material: Material,
}

#[derive(Clone, Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Other(PublicKey),
}

impl TokenKey {
    /// Reads a key of a JWK set; `None` if it has another purpose or an unsupported type.
    pub fn read(members: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let material = match text("kty")? {
            "RSA" => {
                let number = |name| BASE64URL_NOPAD.decode(text(name)?.as_bytes()).ok();
                Material::Rsa { n: number("n")?, e: number("e")? }
            }
            _ => {
                let mut bare = members.clone();
                bare.remove("alg");
                Material::Other(PublicKey::from_jwk(&PublicJwk::from_value(&Value::Object(bare)).ok()?).ok()?)
            }
        };
        Some(Self { kid: text("kid").map(str::to_owned), alg: text("alg").map(str::to_owned), material })
    }

    /// Returns whether the key may verify this algorithm, by its `alg` and its type.
    pub fn is_for(&self, algorithm: TokenAlgorithm) -> bool {
        let ed25519 = |name: &str| matches!(name, "EdDSA" | "Ed25519");
        let alg_fits = self
            .alg
            .as_deref()
            .is_none_or(|alg| alg == algorithm.name() || (ed25519(alg) && ed25519(algorithm.name())));
        alg_fits
            && match (&self.material, cose(algorithm)) {
                (Material::Rsa { .. }, None) => true,
                (Material::Other(key), Some(algorithm)) => key.accepts(algorithm),
                _ => false,
            }
    }

    /// Returns whether the signature of `message` verifies with this key.
    pub fn verifies(&self, algorithm: TokenAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        match (&self.material, cose(algorithm)) {
            (Material::Rsa { n, e }, None) => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            (Material::Other(key), Some(algorithm)) => key.verify(algorithm, message, signature).is_ok(),
            _ => false,
        }
    }
}

fn cose(algorithm: TokenAlgorithm) -> Option<Algorithm> {
    match algorithm {
        TokenAlgorithm::Rs256 => None,
        TokenAlgorithm::Es256 => Some(Algorithm::Es256),
        TokenAlgorithm::EdDsa | TokenAlgorithm::Ed25519 => Some(Algorithm::EdDsa),
    }
}
