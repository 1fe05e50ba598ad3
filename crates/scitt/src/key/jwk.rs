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

    /// Reads the text of a JWK.
    ///
    /// # Errors
    /// As [`from_jwk`](Self::from_jwk), or if it is no public JWK.
    pub fn from_jwk_json(text: &[u8]) -> Result<Self, KeyError> {
        let jwk = PublicJwk::parse(text).map_err(|error| KeyError::Malformed(format!("JWK: {error}")))?;
        Self::from_jwk(&jwk)
    }
}
