//! COSE_Key (RFC 9052 section 7, RFC 9053 section 7) and its thumbprint (RFC 9679).

use sha2::{Digest, Sha256};

use super::{KeyError, PublicKey};
use crate::alg::{Algorithm, Curve};
use crate::cbor::{self, ItemWriter, Value};
use crate::limits::{HEADER_DEPTH, KEY_SET_BYTES, KEY_SET_ITEMS};

const KTY: i64 = 1;
const KID: i64 = 2;
const ALG: i64 = 3;
const KEY_OPS: i64 = 4;
const CRV: i64 = -1;
const X: i64 = -2;
const Y: i64 = -3;
const D: i64 = -4;
const RSA_D: i64 = -3;
const K: i64 = -1;

const RETIRED_AT: &str = "retired_at";
const RETIRED_SIZE: &str = "retired_size";
const COMPROMISED_SIZE: &str = "compromised_size";

const KTY_OKP: i64 = 1;
const KTY_EC2: i64 = 2;
const KTY_RSA: i64 = 3;
const KTY_SYMMETRIC: i64 = 4;
const OP_VERIFY: i64 = 2;

/// A public key with the optional parameters of its COSE_Key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoseKey {
    /// Public key.
    pub key: PublicKey,
    /// Key identifier, `kid`: a hint that need not be unique.
    pub kid: Option<Vec<u8>>,
    /// Algorithm that the key is restricted to; `None` allows all algorithms of its curve.
    pub algorithm: Option<Algorithm>,
    /// Tree sizes from which on a log's key no longer counts; empty for keys of other kinds.
    pub end: KeyEnd,
}

/// End of a log key's validity, as the log publishes it: three parameters with text labels, which readers that do not
/// know them ignore (RFC 9052, section 7.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct KeyEnd {
    /// Time of retirement in Unix seconds (`retired_at`).
    pub retired_at: Option<u64>,
    /// First tree size signed by the successor (`retired_size`): this key signs no head of that size or larger.
    pub retired_size: Option<u64>,
    /// First tree size at which another party may have signed with this key (`compromised_size`).
    pub compromised_size: Option<u64>,
}

impl KeyEnd {
    /// Returns the first tree size at which signatures of this key no longer count.
    pub fn size(&self) -> Option<u64> {
        [self.retired_size, self.compromised_size].into_iter().flatten().min()
    }

    fn entries(self) -> Vec<(Value<'static>, Value<'static>)> {
        let all = [
            (RETIRED_AT, self.retired_at),
            (RETIRED_SIZE, self.retired_size),
            (COMPROMISED_SIZE, self.compromised_size),
        ];
        all.into_iter().filter_map(|(label, value)| Some((label.into(), value?.into()))).collect()
    }
}

impl CoseKey {
    /// Creates a `CoseKey` without optional parameters.
    pub fn bare(key: PublicKey) -> Self {
        Self { key, kid: None, algorithm: None, end: KeyEnd::default() }
    }

    /// Parses one COSE_Key that fills `bytes`. Unknown parameters are ignored.
    ///
    /// # Errors
    /// Returns a [`KeyError`] if it is not a COSE_Key, not on a supported curve, no valid point, or not meant for
    /// verifying; and [`KeyError::Secret`] if it contains a secret key.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::from_value(&parse_limited(bytes)?)
    }

    fn from_value(value: &Value<'_>) -> Result<Self, KeyError> {
        let map = Labels(value);
        if value.as_map().is_none() {
            return Err(malformed("a COSE_Key is a map"));
        }
        if map.has_secret() {
            return Err(KeyError::Secret);
        }
        let curve = map.curve()?;
        let key = map.point(curve)?;
        map.check_operations()?;
        Ok(Self { key, kid: map.kid()?, algorithm: map.algorithm(curve)?, end: map.end() })
    }

    /// Returns the deterministic encoding (RFC 8949, section 4.2.1).
    pub fn encode(&self) -> Vec<u8> {
        let mut entries = required(&self.key);
        if let Some(kid) = &self.kid {
            entries.push((KID.into(), kid.as_slice().into()));
        }
        if let Some(algorithm) = self.algorithm {
            entries.push((ALG.into(), algorithm.to_cose().into()));
        }
        entries.extend(self.end.entries());
        Value::map(entries).encode()
    }
}

impl PublicKey {
    /// Parses one COSE_Key and drops its `kid` and `alg`.
    ///
    /// # Errors
    /// Returns the errors of [`CoseKey::parse`].
    pub fn from_cose_key(bytes: &[u8]) -> Result<Self, KeyError> {
        CoseKey::parse(bytes).map(|found| found.key)
    }

    /// Returns the deterministic COSE_Key of this key, with the given `kid` and `alg`.
    pub fn to_cose_key(&self, kid: Option<&[u8]>, algorithm: Option<Algorithm>) -> Vec<u8> {
        CoseKey { kid: kid.map(<[u8]>::to_vec), algorithm, ..CoseKey::bare(self.clone()) }.encode()
    }

    /// Returns the RFC 9679 thumbprint, SHA-256 over the required parameters, which is the default `kid` of this
    /// project's keys.
    pub fn thumbprint(&self) -> [u8; 32] {
        Sha256::digest(Value::map(required(self)).encode()).into()
    }
}

/// Returns the `kid` of a COSE_Key that need not be usable, if it has one.
pub(crate) fn kid_of(member: &[u8]) -> Option<Vec<u8>> {
    Labels(&parse_limited(member).ok()?).kid().ok()?
}

fn parse_limited(bytes: &[u8]) -> Result<Value<'_>, KeyError> {
    if bytes.len() > KEY_SET_BYTES {
        return Err(malformed("too large"));
    }
    let limits = cbor::Limits { depth: HEADER_DEPTH, items: KEY_SET_ITEMS };
    cbor::parse(bytes, limits).map(|item| item.value).map_err(|error| KeyError::Malformed(error.to_string()))
}

/// Returns the parameters that determine the key: `kty`, `crv`, `x` and `y`.
fn required(key: &PublicKey) -> Vec<(Value<'_>, Value<'_>)> {
    let (kty, crv) = match key.curve() {
        Curve::Ed25519 => (KTY_OKP, 6_i64),
        Curve::P256 => (KTY_EC2, 1),
        Curve::P384 => (KTY_EC2, 2),
        Curve::P521 => (KTY_EC2, 3),
    };
    let mut entries = vec![(KTY.into(), kty.into()), (CRV.into(), crv.into()), (X.into(), key.x().into())];
    entries.extend(key.y().map(|y| (Y.into(), y.into())));
    entries
}

/// The map of a COSE_Key, with look-up by label.
struct Labels<'v>(&'v Value<'v>);

impl<'v> Labels<'v> {
    fn get(&self, label: i64) -> Option<&'v Value<'v>> {
        self.0.get(&label.into()).map(|item| &item.value)
    }

    /// Returns `true` if the parameters that are secret for this type of key are there, also for types that cannot be
    /// used (RFC 9053, section 7; RFC 8230, section 4).
    fn has_secret(&self) -> bool {
        let secret = match self.get(KTY).and_then(Value::as_i64) {
            Some(KTY_RSA) => RSA_D,
            Some(KTY_SYMMETRIC) => K,
            _ => D,
        };
        self.get(secret).is_some()
    }

    fn curve(&self) -> Result<Curve, KeyError> {
        let int = |label| self.get(label).and_then(Value::as_i64);
        match (int(KTY), int(CRV)) {
            (Some(KTY_OKP), Some(6)) => Ok(Curve::Ed25519),
            (Some(KTY_EC2), Some(1)) => Ok(Curve::P256),
            (Some(KTY_EC2), Some(2)) => Ok(Curve::P384),
            (Some(KTY_EC2), Some(3)) => Ok(Curve::P521),
            (Some(kty), Some(crv)) => Err(KeyError::Unsupported(format!("kty {kty}, crv {crv}"))),
            (Some(kty), None) => Err(KeyError::Unsupported(format!("kty {kty}"))),
            (None, _) => Err(malformed("kty (1) is missing or not an integer")),
        }
    }

    fn point(&self, curve: Curve) -> Result<PublicKey, KeyError> {
        let x = self
            .get(X)
            .and_then(Value::as_bytes)
            .ok_or_else(|| malformed("x (-2) is missing or not a byte string"))?;
        match (curve, self.get(Y)) {
            (_, Some(Value::Bytes(y))) => PublicKey::from_coordinates(curve, x, Some(y)),
            (Curve::Ed25519, None) => PublicKey::from_ed25519(x),
            (Curve::Ed25519, Some(_)) => Err(malformed("an OKP key has no y (-3)")),
            (_, Some(Value::Bool(odd))) if x.len() == curve.coordinate_len() => {
                PublicKey::from_sec1(curve, &[&[0x02 | u8::from(*odd)], x].concat())
            }
            (_, Some(Value::Bool(_))) => Err(KeyError::NotOnCurve(curve)),
            _ => Err(malformed("y (-3) is missing or neither a byte string nor a bool")),
        }
    }

    fn kid(&self) -> Result<Option<Vec<u8>>, KeyError> {
        match self.get(KID) {
            None => Ok(None),
            Some(Value::Bytes(kid)) => Ok(Some(kid.to_vec())),
            Some(_) => Err(malformed("kid (2) is not a byte string")),
        }
    }

    fn algorithm(&self, curve: Curve) -> Result<Option<Algorithm>, KeyError> {
        let Some(value) = self.get(ALG) else { return Ok(None) };
        let id = value.as_i64().ok_or_else(|| malformed("alg (3) is not an integer"))?;
        match Algorithm::from_cose(id) {
            Some(algorithm) if algorithm.curve() == curve => Ok(Some(algorithm)),
            _ => Err(KeyError::AlgorithmMismatch { algorithm: id, curve }),
        }
    }

    fn end(&self) -> KeyEnd {
        let number = |label: &str| self.0.get(&label.into()).and_then(|item| item.value.as_u64());
        KeyEnd {
            retired_at: number(RETIRED_AT),
            retired_size: number(RETIRED_SIZE),
            compromised_size: number(COMPROMISED_SIZE),
        }
    }

    fn check_operations(&self) -> Result<(), KeyError> {
        let Some(operations) = self.get(KEY_OPS) else { return Ok(()) };
        let operations = operations.as_array().ok_or_else(|| malformed("key_ops (4) is not an array"))?;
        if operations.iter().any(|operation| operation.value == OP_VERIFY.into()) {
            return Ok(());
        }
        Err(malformed("key_ops (4) does not allow verify"))
    }
}

fn malformed(why: &str) -> KeyError {
    KeyError::Malformed(why.to_owned())
}

/// Encodes a COSE_KeySet, which is an array of COSE_Keys.
pub(crate) fn write_set<'k>(members: impl ExactSizeIterator<Item = &'k CoseKey>) -> Vec<u8> {
    let mut writer = ItemWriter::new();
    writer.array(members.len());
    for member in members {
        writer.raw(&member.encode());
    }
    writer.into_bytes()
}
