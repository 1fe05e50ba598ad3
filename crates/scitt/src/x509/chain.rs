//! Verifies the certificate chain of a header and returns the end-entity key.

use std::time::Duration;

use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter};
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::{ExtendedKeyUsage, KeyUsage};

use super::{ChainError, RootCertificate, SubjectNames, algorithms, did_x509};
use crate::key::PublicKey;
use crate::limits::{CERTIFICATE_BYTES, CERTIFICATES, PATH_ATTEMPTS};

/// Interval in Unix seconds, both ends included, in which all certificates of a path are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Latest `notBefore` of the certificates.
    pub not_before: u64,
    /// Earliest `notAfter` of the certificates.
    pub not_after: u64,
}

impl Validity {
    /// Returns `true` if the path is valid at `at` (Unix seconds).
    pub fn holds(&self, at: u64) -> bool {
        (self.not_before..=self.not_after).contains(&at)
    }

    fn of(certificate: &Certificate) -> Self {
        let dates = certificate.tbs_certificate().validity();
        Self {
            not_before: dates.not_before.to_unix_duration().as_secs(),
            not_after: dates.not_after.to_unix_duration().as_secs(),
        }
    }

    fn intersect(self, other: Self) -> Self {
        Self {
            not_before: self.not_before.max(other.not_before),
            not_after: self.not_after.min(other.not_after),
        }
    }
}

/// A verified path to a trusted root, as [`verify_chain`] returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificationPath {
    key: PublicKey,
    names: SubjectNames,
    validity: Validity,
    leaf: Certificate,
    /// DER of the certificates above the end entity: the intermediates and the root.
    authorities: Vec<Vec<u8>>,
    root: [u8; 32],
}

impl CertificationPath {
    /// Returns the key of the end-entity certificate.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Returns the subject alternative names of the end-entity certificate.
    pub fn names(&self) -> &SubjectNames {
        &self.names
    }

    /// Returns `true` if the certificate itself names `iss`: as a subject alternative name, or as a `did:x509` that it
    /// satisfies.
    pub fn speaks_for(&self, iss: &str) -> bool {
        self.may_be(iss) && (iss.starts_with(did_x509::METHOD) || self.names.binds(iss))
    }

    /// Returns `true` if configuration may bind `iss` to this certificate. A `did:x509`, `did:key` or `did:jwk`
    /// determines its certificate or key itself, and cannot be bound to another.
    pub fn may_be(&self, iss: &str) -> bool {
        match iss.starts_with(did_x509::METHOD) {
            true => did_x509::is_satisfied(iss, &self.leaf, &self.authorities),
            false => PublicKey::from_did(iss).map_or(true, |key| key == self.key),
        }
    }

    /// Returns the interval in which the path is valid: the dates of end entity and intermediates, not the root's.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Returns SHA-256 of the root certificate of the path.
    pub fn root(&self) -> &[u8; 32] {
        &self.root
    }
}

/// Builds a path from `chain` (DER, end entity first) to one of `roots` that is valid at `at` (Unix seconds). With
/// `eku`, an OID in dotted form, the end-entity certificate must list that extended key usage.
///
/// # Errors
/// Returns a [`ChainError`] that names the certificate or the rule.
pub fn verify_chain(
    chain: &[&[u8]],
    roots: &[RootCertificate],
    at: u64,
    eku: Option<&str>,
) -> Result<CertificationPath, ChainError> {
    let leaf = check_shape(chain)?;
    let certificate = parse(0, leaf)?;
    let path = build_path(chain, roots, at)?;
    check_usage(&certificate, eku)?;
    let spki = certificate.tbs_certificate().subject_public_key_info();
    let spki = spki.to_der().map_err(|error| malformed(0, &error))?;
    Ok(CertificationPath {
        key: PublicKey::from_spki_der(&spki)?,
        names: SubjectNames::of(&certificate)?,
        validity: path.validity.intersect(Validity::of(&certificate)),
        leaf: certificate,
        authorities: path.authorities,
        root: path.root,
    })
}

/// Builds a path that is valid at some time. [`CertificationPath::validity`] is the interval in which it is valid, and
/// decisions based on it must be limited to that interval.
///
/// # Errors
/// Returns the errors of [`verify_chain`]. If the certificates are never valid together, the error is
/// [`ChainError::Expired`] or [`ChainError::NotYetValid`].
pub fn verify_chain_at_any_time(
    chain: &[&[u8]],
    roots: &[RootCertificate],
    eku: Option<&str>,
) -> Result<CertificationPath, ChainError> {
    let leaf = Validity::of(&parse(0, check_shape(chain)?)?);
    let mut refused = ChainError::Empty;
    for at in beginnings(chain, leaf) {
        match verify_chain(chain, roots, at, eku) {
            Err(why @ (ChainError::Expired { .. } | ChainError::NotYetValid { .. })) => refused = why,
            answer => return answer,
        }
    }
    Err(refused)
}

/// Returns the times at which to try a path. If a path is ever valid, it is valid when the last of its certificates,
/// nearly always the end entity, becomes valid. At most [`PATH_ATTEMPTS`] times are returned, as each attempt verifies
/// signatures.
fn beginnings(chain: &[&[u8]], leaf: Validity) -> Vec<u64> {
    let others = chain[1..].iter().filter_map(|der| Certificate::from_der(der).ok());
    let mut beginnings: Vec<u64> = others
        .map(|certificate| Validity::of(&certificate).not_before)
        .filter(|begins| leaf.holds(*begins))
        .chain([leaf.not_before])
        .collect();
    beginnings.sort_unstable();
    beginnings.dedup();
    beginnings.truncate(PATH_ATTEMPTS);
    beginnings
}

/// Returns `true` if the text is an object identifier in dotted form, as [`verify_chain`] takes it for `eku`.
pub fn is_oid(text: &str) -> bool {
    ObjectIdentifier::new(text).is_ok()
}

fn check_shape<'a>(chain: &[&'a [u8]]) -> Result<&'a [u8], ChainError> {
    let leaf = chain.first().ok_or(ChainError::Empty)?;
    if chain.len() > CERTIFICATES {
        return Err(ChainError::TooMany { found: chain.len() });
    }
    match chain.iter().position(|der| der.len() > CERTIFICATE_BYTES) {
        Some(position) => Err(malformed(position, &format!("over {CERTIFICATE_BYTES} bytes"))),
        None => Ok(leaf),
    }
}

/// The part of a path above the end entity.
struct CertificatePath {
    /// Interval in which all intermediates are valid.
    validity: Validity,
    authorities: Vec<Vec<u8>>,
    root: [u8; 32],
}

fn build_path(chain: &[&[u8]], roots: &[RootCertificate], at: u64) -> Result<CertificatePath, ChainError> {
    let ders: Vec<CertificateDer<'_>> = chain.iter().map(|der| CertificateDer::from(*der)).collect();
    let anchors: Vec<TrustAnchor<'_>> = roots.iter().map(|root| root.anchor().clone()).collect();
    let leaf = EndEntityCert::try_from(&ders[0]).map_err(refused)?;
    let path = leaf
        .verify_for_usage(
            &algorithms::ALL,
            &anchors,
            &ders[1..],
            UnixTime::since_unix_epoch(Duration::from_secs(at)),
            AnyUsage,
            None,
            None,
        )
        .map_err(refused)?;
    let mut validity = Validity { not_before: 0, not_after: u64::MAX };
    let mut authorities = Vec::new();
    for (number, intermediate) in path.intermediate_certificates().enumerate() {
        let certificate = parse(number + 1, &intermediate.der())?;
        validity = validity.intersect(Validity::of(&certificate));
        authorities.push(intermediate.der().to_vec());
    }
    // A renewed root is the same anchor in another certificate, so that several roots may match.
    let reached: Vec<&RootCertificate> = roots.iter().filter(|root| root.anchor() == path.anchor()).collect();
    authorities.extend(reached.iter().map(|root| root.der().to_vec()));
    let root = reached.first().ok_or(ChainError::UnknownIssuer)?.sha256();
    Ok(CertificatePath { validity, authorities, root })
}

/// Validator that accepts any extended key usage: webpki checks usages along the whole path, while [`check_usage`]
/// checks those of the end entity only.
struct AnyUsage;

impl ExtendedKeyUsageValidator for AnyUsage {
    fn validate(&self, purposes: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        purposes.into_iter().try_for_each(|purpose| purpose.map(|_| ()))
    }
}

fn check_usage(leaf: &Certificate, eku: Option<&str>) -> Result<(), ChainError> {
    let body = leaf.tbs_certificate();
    let usage = body.get_extension::<KeyUsage>();
    if let Some((_, usage)) = usage.map_err(|error| malformed(0, &error))?
        && !usage.digital_signature()
        && !usage.non_repudiation()
    {
        return Err(ChainError::KeyUsage);
    }
    let Some(wanted) = eku else { return Ok(()) };
    let listed = body
        .get_extension::<ExtendedKeyUsage>()
        .map_err(|error| malformed(0, &error))?
        .map_or_else(Vec::new, |(_, usages)| usages.0);
    let wanted_oid = ObjectIdentifier::new(wanted).ok();
    if wanted_oid.is_some_and(|oid| listed.contains(&oid)) {
        return Ok(());
    }
    Err(ChainError::ExtendedKeyUsage(wanted.to_owned()))
}

fn parse(position: usize, der: &[u8]) -> Result<Certificate, ChainError> {
    Certificate::from_der(der).map_err(|error| malformed(position, &error))
}

fn malformed(position: usize, why: &dyn std::fmt::Display) -> ChainError {
    let why = why.to_string();
    ChainError::Malformed { position, why }
}

fn refused(error: webpki::Error) -> ChainError {
    use webpki::Error as E;
    match error {
        E::CertExpired { time, not_after } => {
            ChainError::Expired { at: time.as_secs(), not_after: not_after.as_secs() }
        }
        E::CertNotValidYet { time, not_before } => {
            ChainError::NotYetValid { at: time.as_secs(), not_before: not_before.as_secs() }
        }
        E::UnknownIssuer => ChainError::UnknownIssuer,
        E::InvalidSignatureForPublicKey => ChainError::BadSignature,
        E::CaUsedAsEndEntity => ChainError::LeafIsCa,
        E::UnsupportedSignatureAlgorithmContext(_)
        | E::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => ChainError::SignatureAlgorithm,
        other => ChainError::Refused(other.to_string()),
    }
}
