//! Public keys: encodings, validation and signature verification.
//!
//! A [`PublicKey`] is a point that was validated when it was read. It can be read from and written to COSE_Key (RFC
//! 9052, section 7, `cose`), SPKI in DER or PEM (`spki`), JWK (`jwk`) and DIDs (`did`); [`read_key`] detects
//! the form. Keys are named by their RFC 9679 thumbprint.
//!
//! Each curve has one implementation for verification: Ed25519 uses dalek's `verify_strict`, P-256 and P-384 use ring,
//! P-521 uses RustCrypto. Both s and n-s are accepted, as signers emit both.
//!
//! Not here: which issuer a key is trusted for, and secret keys ([`crate::signer`]).

mod cose;
mod did;
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
pub(crate) use cose::{kid_of, write_set};
pub use did::DidError;
pub use kid::{kid_segment, kid_segment_matches};
pub(crate) use spki::{curve_of, to_pem};
pub use text::{KeyTextError, read_key};
pub use verify::SignatureError;

/// Error of a public key that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key type or curve is not supported.
    #[error("unsupported key type or curve: {0}")]
    Unsupported(String),
    /// The encoding of the key is malformed.
    #[error("malformed key: {0}")]
    Malformed(String),
    /// The coordinates are no point of the curve.
    #[error("not a point on {0}")]
    NotOnCurve(Curve),
    /// The Ed25519 key has small order or a non-canonical encoding, so that signatures under it prove nothing.
    #[error("weak or non-canonical Ed25519 key")]
    Weak,
    /// The input contains a secret key, where only a public key belongs.
    #[error("the key contains secret material: treat it as compromised")]
    Secret,
    /// The algorithm in the key's `alg` parameter is not one of its curve.
    #[error("algorithm {algorithm} does not go with a {curve} key")]
    AlgorithmMismatch {
        /// COSE algorithm identifier of the key.
        algorithm: i64,
        /// Curve of the key.
        curve: Curve,
    },
}

/// A public key on one of four curves, validated as a point.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey(KeyBytes);

/// Key bytes by curve. NIST points are uncompressed SEC1 (`04 ‖ x ‖ y`), as ring and SPKI need them.
#[derive(Clone, PartialEq, Eq, Hash)]
enum KeyBytes {
    Ed25519(EdKey),
    P256([u8; 65]),
    P384([u8; 97]),
    P521([u8; 133]),
}

/// Returns `true` if the y-coordinate is below the prime 2^255 - 19 (RFC 8032, section 5.1.3). The sign of x, the highest
/// bit, is always canonical for a point that is not weak: only weak points have x = 0.
fn has_canonical_y(point: &[u8; 32]) -> bool {
    let [lowest, middle @ .., highest] = point;
    let is_at_least_prime =
        highest & 0x7f == 0x7f && middle.iter().all(|byte| *byte == 0xff) && *lowest >= 0xed;
    !is_at_least_prime
}

impl PublicKey {
    /// Creates a key from the 32 bytes of an Ed25519 public key.
    ///
    /// # Errors
    /// Returns [`KeyError::NotOnCurve`] if they are no point, or [`KeyError::Weak`] if the point has small order or is
    /// not encoded canonically.
    pub fn from_ed25519(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: &[u8; 32] = bytes.try_into().map_err(|_| KeyError::NotOnCurve(Curve::Ed25519))?;
        let key = EdKey::from_bytes(bytes).map_err(|_| KeyError::NotOnCurve(Curve::Ed25519))?;
        if key.is_weak() || !has_canonical_y(bytes) {
            return Err(KeyError::Weak);
        }
        Ok(Self(KeyBytes::Ed25519(key)))
    }

    /// Creates a key from a SEC1 point, compressed or uncompressed.
    ///
    /// # Errors
    /// Returns [`KeyError::NotOnCurve`] if it is not a point of `curve`, or if the curve is Ed25519, which has no SEC1
    /// form.
    pub fn from_sec1(curve: Curve, point: &[u8]) -> Result<Self, KeyError> {
        let off_curve = || KeyError::NotOnCurve(curve);
        let material = match curve {
            Curve::Ed25519 => return Err(off_curve()),
            Curve::P256 => {
                let key = p256::PublicKey::from_sec1_bytes(point).map_err(|_| off_curve())?;
                KeyBytes::P256(fixed(key.to_sec1_point(false).as_bytes()).ok_or_else(off_curve)?)
            }
            Curve::P384 => {
                let key = p384::PublicKey::from_sec1_bytes(point).map_err(|_| off_curve())?;
                KeyBytes::P384(fixed(key.to_sec1_point(false).as_bytes()).ok_or_else(off_curve)?)
            }
            Curve::P521 => {
                let key = p521::PublicKey::from_sec1_bytes(point).map_err(|_| off_curve())?;
                KeyBytes::P521(fixed(key.to_sec1_point(false).as_bytes()).ok_or_else(off_curve)?)
            }
        };
        Ok(Self(material))
    }

    /// Creates a key from its coordinates: only `x` for Ed25519, otherwise `x` and `y` at full width.
    ///
    /// # Errors
    /// Returns the errors of [`from_ed25519`](Self::from_ed25519) and [`from_sec1`](Self::from_sec1).
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

    /// Returns the curve of this key.
    pub fn curve(&self) -> Curve {
        match self.0 {
            KeyBytes::Ed25519(_) => Curve::Ed25519,
            KeyBytes::P256(_) => Curve::P256,
            KeyBytes::P384(_) => Curve::P384,
            KeyBytes::P521(_) => Curve::P521,
        }
    }

    /// Returns the x coordinate, or the whole key for Ed25519.
    pub fn x(&self) -> &[u8] {
        match &self.0 {
            KeyBytes::Ed25519(key) => key.as_bytes(),
            _ => &self.as_bytes()[1..=self.curve().coordinate_len()],
        }
    }

    /// Returns the y coordinate; `None` for Ed25519.
    pub fn y(&self) -> Option<&[u8]> {
        match &self.0 {
            KeyBytes::Ed25519(_) => None,
            _ => Some(&self.as_bytes()[1 + self.curve().coordinate_len()..]),
        }
    }

    /// Returns the raw key: 32 bytes for Ed25519, uncompressed SEC1 otherwise.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            KeyBytes::Ed25519(key) => key.as_bytes(),
            KeyBytes::P256(point) => point,
            KeyBytes::P384(point) => point,
            KeyBytes::P521(point) => point,
        }
    }

    /// Returns the key as compressed SEC1 (the x coordinate and the parity of y); the raw key for Ed25519.
    pub fn to_compressed(&self) -> Vec<u8> {
        let Some(y) = self.y() else {
            return self.as_bytes().to_vec();
        };
        let odd = y.last().is_some_and(|byte| byte & 1 == 1);
        let mut compressed = vec![if odd { 0x03 } else { 0x02 }];
        compressed.extend_from_slice(self.x());
        compressed
    }

    /// Returns `true` if this algorithm may be used with this key.
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
