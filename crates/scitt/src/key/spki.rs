//! Public keys as SubjectPublicKeyInfo (RFC 5280, RFC 5480, RFC 8410), in DER and PEM.

use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, pem};
use x509_cert::spki::SubjectPublicKeyInfoRef;

use super::{KeyError, PublicKey};
use crate::alg::Curve;

const LABEL: &str = "PUBLIC KEY";
pub(crate) const ID_ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
pub(crate) const ID_EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
pub(crate) const SECP256R1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
pub(crate) const SECP384R1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
pub(crate) const SECP521R1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

impl PublicKey {
    /// Parses a `SubjectPublicKeyInfo` in DER.
    ///
    /// # Errors
    /// Returns a [`KeyError`] if it is malformed, not on a supported curve, or no valid point.
    pub fn from_spki_der(der: &[u8]) -> Result<Self, KeyError> {
        let info = SubjectPublicKeyInfoRef::from_der(der)
            .map_err(|error| KeyError::Malformed(format!("SubjectPublicKeyInfo: {error}")))?;
        let curve = curve_of(info.algorithm.oid, info.algorithm.parameters_oid().ok().as_ref())?;
        let key = info
            .subject_public_key
            .as_bytes()
            .ok_or_else(|| KeyError::Malformed("unused bits in the key".into()))?;
        match curve {
            Curve::Ed25519 => Self::from_ed25519(key),
            _ => Self::from_sec1(curve, key),
        }
    }

    /// Parses a PEM `PUBLIC KEY` block.
    ///
    /// # Errors
    /// Returns the errors of [`from_spki_der`](Self::from_spki_der), [`KeyError::Secret`] for a private key, and
    /// [`KeyError::Malformed`] for any other block.
    pub fn from_spki_pem(text: &str) -> Result<Self, KeyError> {
        let (label, der) =
            pem::decode_vec(text.as_bytes()).map_err(|error| KeyError::Malformed(format!("PEM: {error}")))?;
        match label {
            LABEL => Self::from_spki_der(&der),
            other if other.ends_with("PRIVATE KEY") => Err(KeyError::Secret),
            other => Err(KeyError::Malformed(format!("PEM: expected {LABEL}, found {other:.40}"))),
        }
    }

    /// Returns the `SubjectPublicKeyInfo` in DER.
    pub fn to_spki_der(&self) -> Vec<u8> {
        [spki_head(self.curve()), self.as_bytes()].concat()
    }

    /// Returns the PEM `PUBLIC KEY` block, with Unix line ends.
    pub fn to_spki_pem(&self) -> String {
        to_pem(LABEL, &self.to_spki_der())
    }
}

/// Encodes a PEM block (RFC 7468), with Unix line ends.
pub(crate) fn to_pem(label: &str, der: &[u8]) -> String {
    let body = data_encoding::BASE64.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for start in (0..body.len()).step_by(64) {
        text.push_str(&body[start..body.len().min(start + 64)]);
        text.push('\n');
    }
    text + "-----END " + label + "-----\n"
}

/// Returns the curve that an `AlgorithmIdentifier` names.
pub(crate) fn curve_of(
    algorithm: ObjectIdentifier,
    parameters: Option<&ObjectIdentifier>,
) -> Result<Curve, KeyError> {
    match (algorithm, parameters.copied()) {
        (ID_ED25519, None) => Ok(Curve::Ed25519),
        (ID_EC_PUBLIC_KEY, Some(SECP256R1)) => Ok(Curve::P256),
        (ID_EC_PUBLIC_KEY, Some(SECP384R1)) => Ok(Curve::P384),
        (ID_EC_PUBLIC_KEY, Some(SECP521R1)) => Ok(Curve::P521),
        (other, _) => Err(KeyError::Unsupported(other.to_string())),
    }
}

/// Returns the DER bytes before the key bytes. They are constant per curve, as DER has one encoding.
fn spki_head(curve: Curve) -> &'static [u8] {
    match curve {
        Curve::Ed25519 => b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00",
        Curve::P256 => {
            b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00"
        }
        Curve::P384 => {
            b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\x00"
        }
        Curve::P521 => {
            b"\x30\x81\x9b\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23\x03\x81\x86\x00"
        }
    }
}
