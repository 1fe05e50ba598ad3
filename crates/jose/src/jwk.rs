//! Public keys as JSON Web Keys: RFC 7517, RFC 7518 6.2 (EC) and RFC 8037 (OKP).
//!
//! One key has one form here: coordinates are base64url without padding and have the exact
//! length of the curve, leading zeros included. A private key is refused, so that one that was
//! published by mistake is noticed. Unknown members are ignored, as RFC 7517, section 4 demands.
//!
//! Not here: RSA, key sets, and whether the point is on the curve: that is known when the key is
//! used.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    jcs,
    json::{JsonError, Limits, parse_strict},
};

/// The longest text of a key.
pub const MAX_JWK_BYTES: usize = 16 << 10;
/// The deepest nesting in a key's unknown members.
const MAX_JWK_DEPTH: usize = 8;

/// The curves whose keys are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Curve {
    /// Edwards curve, RFC 8032.
    Ed25519,
    /// secp256r1.
    P256,
    /// secp384r1.
    P384,
    /// secp521r1.
    P521,
}

impl Curve {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ed25519, Self::P256, Self::P384, Self::P521];

    /// The value of `crv`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "Ed25519",
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
        }
    }

    /// The value of `kty`.
    pub const fn key_type(self) -> &'static str {
        match self {
            Self::Ed25519 => "OKP",
            Self::P256 | Self::P384 | Self::P521 => "EC",
        }
    }

    /// The length of a coordinate, or of the whole key for Ed25519.
    pub const fn coordinate_len(self) -> usize {
        match self {
            Self::Ed25519 | Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// The length of a signature in JOSE and COSE: r and s at the curve's width, or the 64 bytes of Ed25519.
    pub const fn signature_len(self) -> usize {
        2 * self.coordinate_len()
    }
}

/// The value of `crv`.
impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why JSON is not a public key that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwkError {
    /// It is not strict JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// It is not an object.
    #[error("a JWK is an object")]
    NotAnObject,
    /// A member is missing or not text.
    #[error("the member {0:?} is missing or not a string")]
    Member(&'static str),
    /// No key of this type and on this curve can be read.
    #[error("keys of type {key_type:?} and curve {curve:?} are not supported")]
    Unsupported {
        /// `kty`.
        key_type: String,
        /// `crv`.
        curve: String,
    },
    /// A coordinate is not base64url of the curve's length.
    #[error("the member {member:?} is not {len} bytes in base64url without padding")]
    Coordinate {
        /// Which.
        member: &'static str,
        /// How many bytes it must have.
        len: usize,
    },
    /// An Ed25519 key has no y.
    #[error("a key on Ed25519 has no member \"y\"")]
    UnexpectedY,
    /// The key is private.
    #[error("this is a private key")]
    Private,
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicJwk {
    curve: Curve,
    x: Vec<u8>,
    y: Option<Vec<u8>>,
    alg: Option<String>,
    kid: Option<String>,
}

impl PublicJwk {
    /// An Ed25519 key.
    pub fn ed25519(key: [u8; 32]) -> Self {
        Self { curve: Curve::Ed25519, x: key.to_vec(), y: None, alg: None, kid: None }
    }

    /// A key on a NIST curve; `None` if a coordinate has another length, or the curve is
    /// Ed25519.
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

    /// Reads a key's text.
    pub fn parse(bytes: &[u8]) -> Result<Self, JwkError> {
        let limits = Limits { bytes: MAX_JWK_BYTES, depth: MAX_JWK_DEPTH };
        Self::from_value(&parse_strict(bytes, limits)?)
    }

    /// Reads a key that is part of a larger text.
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

    /// The curve.
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// The x coordinate, or the whole Ed25519 key.
    pub fn x(&self) -> &[u8] {
        &self.x
    }

    /// The y coordinate; an Ed25519 key has none.
    pub fn y(&self) -> Option<&[u8]> {
        self.y.as_deref()
    }

    /// The algorithm that the key is meant for, if it says so.
    pub fn alg(&self) -> Option<&str> {
        self.alg.as_deref()
    }

    /// The name that the key was given, if any.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// The key as JSON, with `alg` and `kid` if it has them.
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
