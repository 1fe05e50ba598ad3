//! From the chain in a header to a verified end-entity key.

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

/// The seconds (unix, both ends included) in which every certificate of a path is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The latest `notBefore`.
    pub not_before: u64,
    /// The earliest `notAfter`.
    pub not_after: u64,
}

impl Validity {
    /// Whether the path stands at this time.
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

/// What a path to a trusted root establishes. Only [`verify_chain`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedChain {
    key: PublicKey,
    names: SubjectNames,
    validity: Validity,
    leaf: Certificate,
    /// The certificates above it: those on the path, and the root.
    authorities: Vec<Vec<u8>>,
    root: [u8; 32],
}

impl VerifiedChain {
    /// The key of the end-entity certificate.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The names the end-entity certificate speaks for.
    pub fn names(&self) -> &SubjectNames {
        &self.names
    }

    /// Whether the certificate itself names `iss`: as a subject alternative name, or by being what a did:x509 means.
    pub fn speaks_for(&self, iss: &str) -> bool {
        self.may_be(iss) && (iss.starts_with(did_x509::METHOD) || self.names.binds(iss))
    }

    /// Whether somebody else may bind `iss` to this certificate. A did:x509, did:key or did:jwk says itself which
    /// certificate or key it means, and nobody can say otherwise.
    pub fn may_be(&self, iss: &str) -> bool {
        match iss.starts_with(did_x509::METHOD) {
            true => did_x509::is_satisfied(iss, &self.leaf, &self.authorities),
            false => PublicKey::from_did(iss).map_or(true, |key| key == self.key),
        }
    }

    /// When this answer holds: the end-entity and intermediate dates, not the root's.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// SHA-256 of the root certificate the path ends at.
    pub fn root(&self) -> &[u8; 32] {
        &self.root
    }
}

/// Builds a path from `chain` (DER, end entity first) to one of `roots` that is valid at `at`
/// (unix seconds). With `eku`, an OID in dotted form, the end-entity certificate must list it.
///
/// # Errors
/// [`ChainError`] says which certificate or rule stands in the way.
pub fn verify_chain(
    chain: &[&[u8]],
    roots: &[RootCertificate],
    at: u64,
    eku: Option<&str>,
) -> Result<VerifiedChain, ChainError> {
    let leaf = check_shape(chain)?;
    let certificate = parse(0, leaf)?;
    let path = build_path(chain, roots, at)?;
    check_usage(&certificate, eku)?;
    let spki = certificate.tbs_certificate().subject_public_key_info();
    let spki = spki.to_der().map_err(|error| malformed(0, &error))?;
    Ok(VerifiedChain {
        key: PublicKey::from_spki_der(&spki)?,
        names: SubjectNames::of(&certificate)?,
        validity: path.validity.intersect(Validity::of(&certificate)),
        leaf: certificate,
        authorities: path.authorities,
        root: path.root,
    })
}

/// Builds a path that is valid at some time, whenever that is: [`VerifiedChain::validity`] says when. What is
/// decided with it must hold only in that interval.
///
/// # Errors
/// As [`verify_chain`]; a path whose certificates are never valid together is refused by its dates.
pub fn verify_chain_at_any_time(
    chain: &[&[u8]],
    roots: &[RootCertificate],
    eku: Option<&str>,
) -> Result<VerifiedChain, ChainError> {
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

/// If a path is ever valid, it is when the last of its certificates begins: nearly always the end entity. Each attempt
/// costs signatures, so there are few.
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

/// Whether text is an object identifier in dotted form, as `eku` wants it.
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

/// What is above the end entity.
struct Path {
    /// The dates of the intermediates.
    validity: Validity,
    authorities: Vec<Vec<u8>>,
    root: [u8; 32],
}

fn build_path(chain: &[&[u8]], roots: &[RootCertificate], at: u64) -> Result<Path, ChainError> {
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
    // A renewed root is the same anchor in another certificate.
    let reached: Vec<&RootCertificate> = roots.iter().filter(|root| root.anchor() == path.anchor()).collect();
    authorities.extend(reached.iter().map(|root| root.der().to_vec()));
    let root = reached.first().ok_or(ChainError::UnknownIssuer)?.sha256();
    Ok(Path { validity, authorities, root })
}

/// webpki demands usages along the whole path; ours are asked of the end entity only.
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
