//! Public keys as JSON Web Keys (RFC 7517), parsed by the crate `jose`.

use jose::jwk::PublicJwk;

use super::{KeyError, PublicKey};
use crate::alg::Algorithm;

impl PublicKey {
    /// Converts a JWK to a key.
    ///
    /// # Errors
    /// Returns a [`KeyError`] if the coordinates are no point, or `alg` is not a signature algorithm of the curve.
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

    /// Returns the key as a JWK with the required members only.
    pub fn to_jwk(&self) -> PublicJwk {
        let ed25519 = <[u8; 32]>::try_from(self.x()).unwrap_or_default();
        self.y()
            .and_then(|y| PublicJwk::ec(self.curve(), self.x(), y))
            .unwrap_or_else(|| PublicJwk::ed25519(ed25519))
    }

    /// Returns the RFC 7638 thumbprint in base64url: the default `kid` of this key in a JWS.
    pub fn jwk_thumbprint(&self) -> String {
        data_encoding::BASE64URL_NOPAD.encode(&self.to_jwk().thumbprint())
    }

    /// Parses the JSON text of a JWK.
    ///
    /// # Errors
    /// Returns the errors of [`from_jwk`](Self::from_jwk), and [`KeyError::Malformed`] if the text is not a public JWK.
    pub fn from_jwk_json(text: &[u8]) -> Result<Self, KeyError> {
        let jwk = PublicJwk::parse(text).map_err(|error| KeyError::Malformed(format!("JWK: {error}")))?;
        Self::from_jwk(&jwk)
    }
}
