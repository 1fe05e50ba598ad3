//! DIDs that contain their key: `did:key` and `did:jwk`.
//!
//! Resolving them needs no network, and the identifier alone determines the key. Only the canonical spelling of a
//! `did:key` is accepted, so that a key has one such name.
//!
//! Not here: `did:web` (needs the network: imported by an operator), `did:x509`, DID documents.

#[cfg(test)]
mod tests;

use data_encoding::BASE64URL_NOPAD;
use thiserror::Error;

use super::{KeyError, PublicKey};
use crate::alg::Curve;
use crate::limits::DID_BYTES;

/// Error of a DID that yields no usable key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DidError {
    /// The text is not a DID, or a DID of another method.
    #[error("not a did:key or did:jwk")]
    Method,
    /// The method-specific part violates the method's specification.
    #[error("malformed DID: {0}")]
    Malformed(String),
    /// The key in the DID is not usable.
    #[error("key of the DID: {0}")]
    Key(#[from] KeyError),
}

impl PublicKey {
    /// Reads the key in a `did:key` or `did:jwk`.
    ///
    /// # Errors
    /// Returns a [`DidError`] if it is neither, or if the key is malformed or on an unsupported curve.
    pub fn from_did(did: &str) -> Result<Self, DidError> {
        if did.starts_with("did:key:") { Self::from_did_key(did) } else { Self::from_did_jwk(did) }
    }

    /// Reads the key in a `did:key` (Ed25519, P-256, P-384 or P-521).
    ///
    /// # Errors
    /// Returns a [`DidError`] if it is not a `did:key`, is not canonical, or contains an unusable key.
    pub fn from_did_key(did: &str) -> Result<Self, DidError> {
        let encoded = check_length(did)?.strip_prefix("did:key:").ok_or(DidError::Method)?;
        let encoded =
            encoded.strip_prefix('z').ok_or_else(|| DidError::Malformed("expected base58btc (z…)".into()))?;
        let bytes = bs58::decode(encoded)
            .into_vec()
            .map_err(|error| DidError::Malformed(format!("base58btc: {error}")))?;
        let key = match bytes.split_at_checked(2) {
            Some((prefix, key)) if prefix == multicodec(Curve::Ed25519) => Self::from_ed25519(key)?,
            Some((prefix, key)) => {
                let curve = [Curve::P256, Curve::P384, Curve::P521]
                    .into_iter()
                    .find(|curve| multicodec(*curve) == prefix)
                    .ok_or_else(|| KeyError::Unsupported("multicodec of the did:key".into()))?;
                Self::from_sec1(curve, key)?
            }
            None => return Err(DidError::Malformed("too short".into())),
        };
        if key.did_key() != did {
            return Err(DidError::Malformed("not the canonical did:key of its key".into()));
        }
        Ok(key)
    }

    /// Reads the key in a `did:jwk`.
    ///
    /// # Errors
    /// Returns a [`DidError`] if it is not a `did:jwk`, or contains an unusable key.
    pub fn from_did_jwk(did: &str) -> Result<Self, DidError> {
        let encoded = check_length(did)?.strip_prefix("did:jwk:").ok_or(DidError::Method)?;
        let jwk = BASE64URL_NOPAD
            .decode(encoded.as_bytes())
            .map_err(|error| DidError::Malformed(format!("base64url: {error}")))?;
        Ok(Self::from_jwk_json(&jwk)?)
    }

    /// Returns the `did:key` of this key.
    pub fn did_key(&self) -> String {
        let bytes = [multicodec(self.curve()).as_slice(), &self.to_compressed()].concat();
        format!("did:key:z{}", bs58::encode(bytes).into_string())
    }

    /// Returns the `did:jwk` of this key, with the JWK's members in alphabetical order.
    pub fn did_jwk(&self) -> String {
        let coordinate = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        let (crv, x) = (self.curve().name(), coordinate(self.x()));
        let jwk = match self.y() {
            None => format!(r#"{{"crv":"{crv}","kty":"OKP","x":"{x}"}}"#),
            Some(y) => {
                format!(r#"{{"crv":"{crv}","kty":"EC","x":"{x}","y":"{}"}}"#, coordinate(y))
            }
        };
        format!("did:jwk:{}", coordinate(jwk.as_bytes()))
    }
}

/// Returns the multicodec prefix of the curve, as a varint of two bytes.
fn multicodec(curve: Curve) -> [u8; 2] {
    match curve {
        Curve::Ed25519 => [0xed, 0x01],
        Curve::P256 => [0x80, 0x24],
        Curve::P384 => [0x81, 0x24],
        Curve::P521 => [0x82, 0x24],
    }
}

fn check_length(did: &str) -> Result<&str, DidError> {
    if did.len() > DID_BYTES {
        return Err(DidError::Malformed(format!("over {DID_BYTES} bytes")));
    }
    Ok(did)
}
