//! Public keys as JSON Web Keys (RFC 7517), by way of `jose`.

use jose::jwk::PublicJwk;

use super::{KeyError, PublicKey};
use crate::alg::Algorithm;

impl PublicKey {
    /// The key of a JWK.
    ///
    /// # Errors
    /// If the coordinates are no point, or `alg` names no signature algorithm of its curve.
    pub fn from_jwk(jwk: &PublicJwk) -> Result<Self, KeyError> {
        let curve = jwk.curve();
        if let Some(name) = jwk.alg() {
            let algorithm = Algorithm::from_name(name)
                .ok_or_else(|| KeyError::Unsupported(format!("alg of the JWK: {name:.40}")))?;
            if algorithm.curve() != curve {
                return Err(KeyError::AlgorithmMismatch { algorithm: algorithm.to_cose(), curve });
            }
        }
        Self::from_coordinates(curve, jwk.x(), jwk.y())
    }

    /// The key as a JWK with nothing that is not required.
    pub fn to_jwk(&self) -> PublicJwk {
        let ed25519 = <[u8; 32]>::try_from(self.x()).unwrap_or_default();
        self.y()
            .and_then(|y| PublicJwk::ec(self.curve(), self.x(), y))
            .unwrap_or_else(|| PublicJwk::ed25519(ed25519))
    }

    /// The name a JWS calls this key by when nobody gave it another: the RFC 7638 thumbprint in base64url.
    pub fn jwk_thumbprint(&self) -> String {
        data_encoding::BASE64URL_NOPAD.encode(&self.to_jwk().thumbprint())
    }

    /// Reads the text of a JWK.
    ///
    /// # Errors
    /// As [`from_jwk`](Self::from_jwk), or if it is no public JWK.
    pub fn from_jwk_json(text: &[u8]) -> Result<Self, KeyError> {
        let jwk = PublicJwk::parse(text).map_err(|error| KeyError::Malformed(format!("JWK: {error}")))?;
        Self::from_jwk(&jwk)
    }
}
