//! Public keys as JSON Web Keys: RFC 7517, RFC 7518 section 6.2 (EC) and RFC 8037 (OKP).
//!
//! Each key has one accepted form: coordinates are base64url without padding, with the exact length of the curve
//! including leading zeros. Private keys are refused, so that an accidentally published one is noticed. Unknown members
//! are ignored, as RFC 7517, section 4 requires.
//!
//! Not here: RSA, key sets, and the check that the point is on the curve, which is made when the key is used.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    jcs,
    json::{JsonError, Limits, parse_strict},
};

/// Maximum bytes of a key's JSON text.
pub const MAX_JWK_BYTES: usize = 16 << 10;
/// Maximum nesting in the unknown members of a key.
const MAX_JWK_DEPTH: usize = 8;

/// The supported curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Curve {
    /// `Ed25519`, the Edwards curve of RFC 8032.
    Ed25519,
    /// `P-256` (secp256r1).
    P256,
    /// `P-384` (secp384r1).
    P384,
    /// `P-521` (secp521r1).
    P521,
}

impl Curve {
    /// All supported curves.
    pub const ALL: [Self; 4] = [Self::Ed25519, Self::P256, Self::P384, Self::P521];

    /// Returns the value of the member `crv`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "Ed25519",
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
        }
    }

    /// Returns the value of the member `kty`.
    pub const fn key_type(self) -> &'static str {
        match self {
            Self::Ed25519 => "OKP",
            Self::P256 | Self::P384 | Self::P521 => "EC",
        }
    }

    /// Returns the length of a coordinate in bytes; for Ed25519, of the whole key.
    pub const fn coordinate_len(self) -> usize {
        match self {
            Self::Ed25519 | Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// Returns the length of a JOSE or COSE signature in bytes: r and s with the curve's width each, or the 64 bytes of
    /// Ed25519.
    pub const fn signature_len(self) -> usize {
        2 * self.coordinate_len()
    }
}

/// Formats the value of `crv`.
impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason why a JSON value is not a usable public key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwkError {
    /// The text is not strict JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The value is not an object.
    #[error("a JWK is an object")]
    NotAnObject,
    /// A member is missing or is not a string.
    #[error("the member {0:?} is missing or not a string")]
    Member(&'static str),
    /// The combination of key type and curve is not supported.
    #[error("keys of type {key_type:?} and curve {curve:?} are not supported")]
    Unsupported {
        /// The value of `kty`.
        key_type: String,
        /// The value of `crv`.
        curve: String,
    },
    /// A coordinate is not base64url without padding, or has the wrong length.
    #[error("the member {member:?} is not {len} bytes in base64url without padding")]
    Coordinate {
        /// The name of the member, `x` or `y`.
        member: &'static str,
        /// The required length in bytes, [`Curve::coordinate_len`].
        len: usize,
    },
    /// An Ed25519 key has a member `y`, which does not exist for this curve.
    #[error("a key on Ed25519 has no member \"y\"")]
    UnexpectedY,
    /// The key has a member `d`: it is private.
    #[error("this is a private key")]
    Private,
}

/// A public key, with `alg` and `kid` if it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicJwk {
    curve: Curve,
    x: Vec<u8>,
    y: Option<Vec<u8>>,
    alg: Option<String>,
    kid: Option<String>,
}

impl PublicJwk {
    /// Creates an Ed25519 key from its 32 bytes.
    pub fn ed25519(key: [u8; 32]) -> Self {
        Self { curve: Curve::Ed25519, x: key.to_vec(), y: None, alg: None, kid: None }
    }

    /// Creates a key on a NIST curve. Returns `None` if a coordinate has the wrong length, or the curve is
    /// [`Curve::Ed25519`].
    pub fn ec(curve: Curve, x: &[u8], y: &[u8]) -> Option<Self> {
        let len = curve.coordinate_len();
        (curve.key_type() == "EC" && x.len() == len && y.len() == len).then(|| Self {
            curve,
            x: x.to_vec(),
            y: Some(y.to_vec()),
            alg: None,
            kid: None,
        })
    }

    /// Parses a key from JSON.
    ///
    /// # Errors
    /// [`JwkError`] if the text is not a supported public key.
    pub fn parse(bytes: &[u8]) -> Result<Self, JwkError> {
        let limits = Limits { bytes: MAX_JWK_BYTES, depth: MAX_JWK_DEPTH };
        Self::from_value(&parse_strict(bytes, limits)?)
    }

    /// Parses a key from a JSON value.
    ///
    /// # Errors
    /// [`JwkError`] if the value is not a supported public key.
    pub fn from_value(value: &Value) -> Result<Self, JwkError> {
        let members = value.as_object().ok_or(JwkError::NotAnObject)?;
        if members.contains_key("d") {
            return Err(JwkError::Private);
        }
        let curve = curve(text(members, "kty")?, text(members, "crv")?)?;
        Ok(Self {
            curve,
            x: coordinate(members, "x", curve)?,
            y: match curve {
                Curve::Ed25519 if members.contains_key("y") => return Err(JwkError::UnexpectedY),
                Curve::Ed25519 => None,
                Curve::P256 | Curve::P384 | Curve::P521 => Some(coordinate(members, "y", curve)?),
            },
            alg: optional_text(members, "alg")?,
            kid: optional_text(members, "kid")?,
        })
    }

    /// Returns the key's curve.
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// Returns the x coordinate, or the whole key for Ed25519.
    pub fn x(&self) -> &[u8] {
        &self.x
    }

    /// Returns the y coordinate; `None` for Ed25519.
    pub fn y(&self) -> Option<&[u8]> {
        self.y.as_deref()
    }

    /// Returns the member `alg`, the algorithm that the key is meant for.
    pub fn alg(&self) -> Option<&str> {
        self.alg.as_deref()
    }

    /// Returns the member `kid`, the key's identifier.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Returns the key as JSON, with `alg` and `kid` if it has them.
    pub fn to_value(&self) -> Value {
        let mut value = self.required_members();
        if let Value::Object(members) = &mut value {
            let optional = [("alg", &self.alg), ("kid", &self.kid)];
            for (name, text) in optional {
                members.extend(text.clone().map(|text| (name.to_owned(), text.into())));
            }
        }
        value
    }

    /// The key's SHA-256 thumbprint (RFC 7638).
    pub fn thumbprint(&self) -> [u8; 32] {
        Sha256::digest(jcs::canonical(&self.required_members())).into()
    }

    fn required_members(&self) -> Value {
        let mut members = json!({
            "kty": self.curve.key_type(),
            "crv": self.curve.name(),
            "x": BASE64URL_NOPAD.encode(&self.x),
        });
        if let Some(y) = &self.y {
            members["y"] = BASE64URL_NOPAD.encode(y).into();
        }
        members
    }
}

fn curve(key_type: &str, name: &str) -> Result<Curve, JwkError> {
    let mut curves = Curve::ALL.into_iter();
    curves
        .find(|curve| curve.key_type() == key_type && curve.name() == name)
        .ok_or_else(|| JwkError::Unsupported { key_type: key_type.to_owned(), curve: name.to_owned() })
}

fn coordinate(members: &Map<String, Value>, member: &'static str, curve: Curve) -> Result<Vec<u8>, JwkError> {
    let len = curve.coordinate_len();
    BASE64URL_NOPAD
        .decode(text(members, member)?.as_bytes())
        .ok()
        .filter(|bytes| bytes.len() == len)
        .ok_or(JwkError::Coordinate { member, len })
}

fn text<'a>(members: &'a Map<String, Value>, name: &'static str) -> Result<&'a str, JwkError> {
    let member = members.get(name).and_then(Value::as_str);
    member.ok_or(JwkError::Member(name))
}

fn optional_text(members: &Map<String, Value>, name: &'static str) -> Result<Option<String>, JwkError> {
    match members.contains_key(name) {
        true => text(members, name).map(|text| Some(text.to_owned())),
        false => Ok(None),
    }
}
