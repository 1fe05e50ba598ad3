//! Public keys: what they are, how they are checked when read, and what they verify.
//!
//! A [`PublicKey`] is a point that was validated once, so every later use is only arithmetic.
//! Three spellings lead here and back: COSE_Key (RFC 9052 section 7, `cose`), SPKI in DER or PEM
//! (`spki`) and DIDs ([`crate::did`]); [`read_key`] takes any. The name of a key is its RFC 9679 thumbprint.
//!
//! Verification takes one path per curve: Ed25519 by dalek's `verify_strict`, P-256 and P-384 by
//! ring, P-521 by RustCrypto. Both s and n-s are accepted, as signers emit both.
//!
//! Not here: which key to trust for whom, and secret keys ([`crate::signer`]).

mod cose;
mod jwk;
mod kid;
mod spki;
#[cfg(test)]
mod tests;
mod text;
mod verify;

use std::fmt;

use ed25519_dalek::VerifyingKey as EdKey;
use p256::elliptic_curve::sec1::ToSec1Point;
use thiserror::Error;

use crate::alg::{Algorithm, Curve};

pub use cose::{CoseKey, KeyEnd};
pub(crate) use cose::{parse_limited, write_set};
pub use kid::{kid_segment, kid_segment_matches};
pub(crate) use spki::{curve_of, to_pem};
pub use text::{KeyTextError, read_key};
pub use verify::SignatureError;

/// Why bytes are not a public key we can use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key type or curve is none of ours.
    #[error("unsupported key type or curve: {0}")]
    Unsupported(String),
    /// The encoding of the key is broken.
    #[error("malformed key: {0}")]
    Malformed(String),
    /// The coordinates are no point of the curve.
    #[error("not a point on {0}")]
    NotOnCurve(Curve),
    /// A key of small order or in a second spelling: signatures under it prove nothing.
    #[error("weak or non-canonical Ed25519 key")]
    Weak,
    /// A secret was found where only a public key belongs.
    #[error("the key contains secret material: treat it as compromised")]
    Secret,
    /// The algorithm the key is marked for is not an algorithm of its curve.
    #[error("algorithm {algorithm} does not go with a {curve} key")]
    AlgorithmMismatch {
        /// The COSE algorithm identifier found.
        algorithm: i64,
        /// The curve of the key.
        curve: Curve,
    },
}

/// A public key on one of four curves, known to be a valid point.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey(Material);

/// NIST points are kept as uncompressed SEC1 (`04 ‖ x ‖ y`), the form ring and SPKI want.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Material {
    Ed25519(EdKey),
    P256([u8; 65]),
    P384([u8; 97]),
    P521([u8; 133]),
}

impl PublicKey {
    /// A key from the 32 bytes of an Ed25519 public key.
    ///
    /// # Errors
    /// If they are no point, a point of small order, or not the one canonical spelling of it.
    pub fn from_ed25519(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: &[u8; 32] = bytes.try_into().map_err(|_| KeyError::NotOnCurve(Curve::Ed25519))?;
        let key = EdKey::from_bytes(bytes).map_err(|_| KeyError::NotOnCurve(Curve::Ed25519))?;
        if key.is_weak() || key.to_edwards().compress().as_bytes() != bytes {
            return Err(KeyError::Weak);
        }
        Ok(Self(Material::Ed25519(key)))
    }

    /// A key from a SEC1 point, compressed or not.
    ///
    /// # Errors
    /// If it is no point of `curve`, or the curve is Ed25519 (which has no SEC1 form).
    pub fn from_sec1(curve: Curve, point: &[u8]) -> Result<Self, KeyError> {
        let off_curve = || KeyError::NotOnCurve(curve);
        let material = match curve {
            Curve::Ed25519 => return Err(off_curve()),
            Curve::P256 => {
                let key = p256::PublicKey::from_sec1_bytes(point).map_err(|_| off_curve())?;
                Material::P256(fixed(key.to_sec1_point(false).as_bytes()).ok_or_else(off_curve)?)
            }
            Curve::P384 => {
                let key = p384::PublicKey::from_sec1_bytes(point).map_err(|_| off_curve())?;
                Material::P384(fixed(key.to_sec1_point(false).as_bytes()).ok_or_else(off_curve)?)
            }
            Curve::P521 => {
                let key = p521::PublicKey::from_sec1_bytes(point).map_err(|_| off_curve())?;
                Material::P521(fixed(key.to_sec1_point(false).as_bytes()).ok_or_else(off_curve)?)
            }
        };
        Ok(Self(material))
    }

    /// A key from its coordinates: `x` alone for Ed25519, both at full width otherwise.
    ///
    /// # Errors
    /// As [`from_ed25519`](Self::from_ed25519) and [`from_sec1`](Self::from_sec1).
    pub fn from_coordinates(curve: Curve, x: &[u8], y: Option<&[u8]>) -> Result<Self, KeyError> {
        match (curve, y) {
            (Curve::Ed25519, None) => Self::from_ed25519(x),
            (Curve::Ed25519, Some(_)) | (_, None) => Err(KeyError::NotOnCurve(curve)),
            (_, Some(y)) => {
                let len = curve.coordinate_len();
                if x.len() != len || y.len() != len {
                    return Err(KeyError::NotOnCurve(curve));
                }
                Self::from_sec1(curve, &[&[0x04], x, y].concat())
            }
        }
    }

    /// The curve of this key.
    pub fn curve(&self) -> Curve {
        match self.0 {
            Material::Ed25519(_) => Curve::Ed25519,
            Material::P256(_) => Curve::P256,
            Material::P384(_) => Curve::P384,
            Material::P521(_) => Curve::P521,
        }
    }

    /// The x coordinate, or the whole key for Ed25519.
    pub fn x(&self) -> &[u8] {
        match &self.0 {
            Material::Ed25519(key) => key.as_bytes(),
            _ => &self.as_bytes()[1..=self.curve().coordinate_len()],
        }
    }

    /// The y coordinate; Ed25519 keys have none.
    pub fn y(&self) -> Option<&[u8]> {
        match &self.0 {
            Material::Ed25519(_) => None,
            _ => Some(&self.as_bytes()[1 + self.curve().coordinate_len()..]),
        }
    }

    /// The raw key: 32 bytes for Ed25519, uncompressed SEC1 otherwise.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Material::Ed25519(key) => key.as_bytes(),
            Material::P256(point) => point,
            Material::P384(point) => point,
            Material::P521(point) => point,
        }
    }

    /// SEC1 with one coordinate and the parity of the other; the raw key for Ed25519.
    pub fn to_compressed(&self) -> Vec<u8> {
        let Some(y) = self.y() else {
            return self.as_bytes().to_vec();
        };
        let odd = y.last().is_some_and(|byte| byte & 1 == 1);
        let mut compressed = vec![if odd { 0x03 } else { 0x02 }];
        compressed.extend_from_slice(self.x());
        compressed
    }

    /// Whether this algorithm may be used with this key.
    pub fn accepts(&self, algorithm: Algorithm) -> bool {
        algorithm.curve() == self.curve()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = data_encoding::HEXLOWER.encode(&self.to_compressed());
        write!(f, "PublicKey({}, {hex})", self.curve())
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}
