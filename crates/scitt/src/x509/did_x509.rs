//! `did:x509`, method version 0: an issuer defined by a CA certificate and by predicates on the end-entity certificate.
//!
//! `did:x509:0:sha256:<fingerprint>::subject:C:US:O:Acme::eku:1.3.6.1.5.5.7.3.3` requires that a certificate above the
//! end entity on the verified path has this digest, and that the end-entity certificate satisfies every predicate. No
//! network access is needed.
//!
//! Not here: the predicate `fulcio-issuer` (a DID with it is never satisfied), and DID documents.

use std::collections::HashSet;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Tag, Tagged};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{ExtendedKeyUsage, SubjectAltName};

use crate::limits::DID_X509_PREDICATES;

/// Prefix of every `did:x509`.
pub(super) const METHOD: &str = "did:x509:";

/// Returns `true` if the path of `leaf` and the `authorities` above it (DER) satisfies the DID.
pub(super) fn is_satisfied(did: &str, leaf: &Certificate, authorities: &[Vec<u8>]) -> bool {
    let version_0 = did.strip_prefix(METHOD).and_then(|rest| rest.strip_prefix("0:"));
    let Some((fingerprint, predicates)) = version_0.and_then(|rest| rest.split_once("::")) else {
        return false;
    };
    authorities.iter().any(|der| is_fingerprint(fingerprint, der))
        && predicates.split("::").count() <= DID_X509_PREDICATES
        && predicates.split("::").all(|predicate| holds(predicate, leaf))
}

fn is_fingerprint(fingerprint: &str, der: &[u8]) -> bool {
    let digest = match fingerprint.split_once(':') {
        Some(("sha256", _)) => Sha256::digest(der).to_vec(),
        Some(("sha384", _)) => Sha384::digest(der).to_vec(),
        Some(("sha512", _)) => Sha512::digest(der).to_vec(),
        _ => return false,
    };
    fingerprint.split_once(':').is_some_and(|(_, value)| value == BASE64URL_NOPAD.encode(&digest))
}

fn holds(predicate: &str, leaf: &Certificate) -> bool {
    match predicate.split_once(':') {
        Some(("subject", fields)) => has_subject(leaf, fields),
        Some(("san", name)) => has_alternative_name(leaf, name),
        Some(("eku", oid)) => has_usage(leaf, oid),
        _ => false,
    }
}

/// Checks a `subject` predicate: one or more `<label>:<value>`, each label once.
fn has_subject(leaf: &Certificate, fields: &str) -> bool {
    let mut seen = HashSet::new();
    let mut fields = fields.split(':');
    while let Some(label) = fields.next() {
        let (Some(oid), Some(value)) = (attribute(label), fields.next().and_then(decoded)) else {
            return false;
        };
        if !seen.insert(oid) || only_value(leaf, oid) != Some(value.as_str()) {
            return false;
        }
    }
    true
}

/// Labels of RFC 4514 that the method uses. Any other attribute is named by its OID; for these, the OID is refused.
const LABELS: [(&str, &str); 7] = [
    ("CN", "2.5.4.3"),
    ("C", "2.5.4.6"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("STREET", "2.5.4.9"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
];

fn attribute(label: &str) -> Option<ObjectIdentifier> {
    let labelled = LABELS.iter().find(|(known, _)| *known == label).map(|(_, oid)| *oid);
    let numbered = (!LABELS.iter().any(|(_, oid)| *oid == label)).then_some(label);
    ObjectIdentifier::new(labelled.or(numbered)?).ok()
}

/// Returns an attribute value as text, if the subject has the attribute exactly once.
fn only_value(leaf: &Certificate, oid: ObjectIdentifier) -> Option<&str> {
    let mut values = leaf.tbs_certificate().subject().iter().filter(|attribute| attribute.oid == oid);
    let (Some(only), None) = (values.next(), values.next()) else { return None };
    match only.value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => {
            std::str::from_utf8(only.value.value()).ok()
        }
        _ => None,
    }
}

fn has_alternative_name(leaf: &Certificate, name: &str) -> bool {
    let Some((kind, Some(value))) = name.split_once(':').map(|(kind, value)| (kind, decoded(value))) else {
        return false;
    };
    let names = leaf.tbs_certificate().get_extension::<SubjectAltName>().ok().flatten();
    names.map_or_else(Vec::new, |(_, names)| names.0).iter().any(|found| match (kind, found) {
        ("email", GeneralName::Rfc822Name(email)) => email.as_str() == value,
        ("dns", GeneralName::DnsName(dns)) => dns.as_str() == value,
        ("uri", GeneralName::UniformResourceIdentifier(uri)) => uri.as_str() == value,
        _ => false,
    })
}

fn has_usage(leaf: &Certificate, oid: &str) -> bool {
    let usages = leaf.tbs_certificate().get_extension::<ExtendedKeyUsage>().ok().flatten();
    usages.is_some_and(|(_, usages)| usages.0.iter().any(|usage| usage.to_string() == oid))
}

/// Decodes percent-encoding. Returns `None` for an empty value, and for characters that the method requires to be
/// encoded.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        rest = match first {
            b'%' => {
                let (digits, after) = after.split_at_checked(2)?;
                bytes.extend(HEXLOWER_PERMISSIVE.decode(digits).ok()?);
                after
            }
            plain if plain.is_ascii_alphanumeric() || b"-._".contains(plain) => {
                bytes.push(*plain);
                after
            }
            _ => return None,
        };
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}
