//! Verifies the issuer's signature of a statement, and checks its headers and dates.

use scitt::header::X5Chain;
use scitt::x509::{
    CertificationPath, ChainError, RootCertificate, check_thumbprint, verify_chain, verify_chain_at_any_time,
};
use scitt::{CoseKey, PublicKey, SignatureError, SignedStatement};

use crate::payload::{self, Detached};
use crate::registration_time::RegistrationTime;
use crate::time::rfc3339;
use crate::trust::{Candidates, NoCandidate};
use crate::verdict::{Check, CheckName, CheckState, Code};
use crate::{CLOCK_SKEW, HeaderProfile, TrustStore, TrustedIssuer, to_signed};

const NAME: CheckName = CheckName::IssuerSignature;

/// Checks of the statement itself, without payload and receipts.
pub(crate) struct IssuerCheck {
    pub(crate) checks: Vec<Check>,
}

impl IssuerCheck {
    /// Returns `true` if the issuer's signature verifies, `false` if not, and `None` if it was not checked.
    pub(crate) fn signature_held(&self) -> Option<bool> {
        let check = self.checks.iter().find(|check| check.name == NAME)?;
        match check.state {
            CheckState::Ok => Some(true),
            CheckState::Failed => Some(false),
            CheckState::NotDone => None,
        }
    }
}

/// Checks headers, signature and dates, with certificates and dates judged at the time of registration.
pub(crate) fn check(
    statement: &SignedStatement,
    given: Option<&[u8]>,
    trust: &TrustStore,
    registered: RegistrationTime,
) -> IssuerCheck {
    let iss = statement.header().iss();
    let known: Vec<&TrustedIssuer> = iss.map_or_else(Vec::new, |iss| trust.issuers_of(iss).collect());
    let question = IssuerCheckInput { statement, iss, known, trust, registered };
    let signature = match question.check_signature(given) {
        Ok(detail) => Check::ok(NAME, detail),
        Err(check) => check,
    };
    IssuerCheck { checks: vec![question.check_headers(), signature, question.check_dates()] }
}

struct IssuerCheckInput<'q> {
    statement: &'q SignedStatement,
    iss: Option<&'q str>,
    known: Vec<&'q TrustedIssuer>,
    trust: &'q TrustStore,
    registered: RegistrationTime,
}

impl<'q> IssuerCheckInput<'q> {
    /// Checks the headers of RFC 9943, section 6, unless the trust store sets [`HeaderProfile::Rfc9942`] for this
    /// issuer.
    fn check_headers(&self) -> Check {
        let lenient = self.known.iter().any(|issuer| issuer.profile == HeaderProfile::Rfc9942);
        match self.statement.header().require_scitt() {
            Ok(identity) => Check::ok(CheckName::Headers, format!("subject {:?}", identity.sub)),
            Err(why) if lenient => Check::ok(CheckName::Headers, format!("profile rfc9942: {why}")),
            Err(why) => Check::failed(CheckName::Headers, Code::MissingHeader, why.to_string()),
        }
    }

    fn check_dates(&self) -> Check {
        let name = CheckName::StatementDates;
        let claims = self.statement.header().claims();
        let (exp, nbf) = claims.map_or((None, None), |claims| (claims.exp(), claims.nbf()));
        let at = self.registered.at();
        if let Some(nbf) = nbf.filter(|nbf| *nbf > at.saturating_add(CLOCK_SKEW)) {
            let detail = format!("begins at {}, after {}", rfc3339(nbf), rfc3339(at));
            return Check::failed(name, Code::StatementNotYetValid, detail);
        }
        match exp.filter(|exp| *exp <= at) {
            Some(exp) => self.registered.ended(name, Code::StatementExpired, exp),
            None => Check::ok(name, format!("valid at {}", rfc3339(at))),
        }
    }

    /// Verifies the signature. Returns a description of the signer, or the check that was not done or failed.
    fn check_signature(&self, given: Option<&[u8]>) -> Result<String, Check> {
        let iss = self.iss.ok_or_else(|| not_done(Code::UnknownIssuer, "the statement names no issuer"))?;
        let signature = Signature::of(self.statement, given);
        let keys = self.listed_keys(iss);
        let by_certificate = match self.certified_key(iss) {
            Err(check) if self.is_known_by_key(&keys, &check) => None,
            found => found?,
        };
        if by_certificate.is_none() && keys.is_empty() {
            let detail = format!("no trust anchor for {iss:?}");
            return Err(not_done(Code::UnknownIssuer, &detail));
        }
        let signature = signature?;
        match by_certificate {
            Some(path) => self.check_certified(iss, &signature, &path, &keys),
            None => self.check_listed(iss, &signature, &keys),
        }
    }

    /// Returns `true` if the trust store lists keys that may have made the signature, so that a certificate is not
    /// needed. A certificate that leads to a trusted root, or should, is passed over only for a key that the statement
    /// names.
    fn is_known_by_key(&self, keys: &[CoseKey], no_certificate: &Check) -> bool {
        match no_certificate.code {
            Some(Code::UnknownIssuer) => !keys.is_empty(),
            Some(Code::CertificateMissing | Code::IssuerNotBound) => !self.named_keys(keys).is_empty(),
            _ => false,
        }
    }

    /// Returns the listed keys with the `kid` of the statement.
    fn named_keys<'k>(&self, keys: &'k [CoseKey]) -> Vec<&'k PublicKey> {
        let kid = self.statement.header().kid();
        kid.map_or_else(Vec::new, |kid| Candidates::of(keys, Some(kid.as_ref())).meant)
    }

    /// Verifies the signature with the key of a certificate. If the trust store lists another key for the `kid`, the two
    /// identifiers disagree (RFC 9943, section 5.1.1.1). If it lists the key of the certificate for the `kid`, the certificate
    /// may have ended, as it is not needed.
    fn check_certified(
        &self,
        iss: &str,
        signature: &Signature<'_>,
        path: &CertificationPath,
        keys: &[CoseKey],
    ) -> Result<String, Check> {
        signature.verify(path.key()).map_err(|why| invalid(&why))?;
        let named = self.named_keys(keys);
        if !named.is_empty() && !named.contains(&path.key()) {
            let detail =
                "the certificate has another key than the trust store lists for the kid of the statement";
            return Err(Check::failed(NAME, Code::IssuerSignatureInvalid, detail));
        }
        let end = path.validity().not_after;
        if end < self.unsigned_time() && named.is_empty() {
            return Err(self.registered.ended(NAME, Code::CertificatePathInvalid, to_signed(end)));
        }
        Ok(self.signed_by(iss, "certificate"))
    }

    /// Verifies the signature with the keys that the trust store lists.
    fn check_listed(&self, iss: &str, signature: &Signature<'_>, keys: &[CoseKey]) -> Result<String, Check> {
        let kid = self.statement.header().kid().map(|kid| kid.as_ref());
        match Candidates::of(keys, kid).find(|key| signature.verify(key)) {
            Ok(_) => Ok(self.signed_by(iss, "key")),
            Err(NoCandidate::Refused(why)) => Err(invalid(&why)),
            Err(NoCandidate::Unknown) => {
                let detail = format!("{iss:?} is trusted, but not with the key that the statement names");
                Err(not_done(Code::UnknownIssuerKey, &detail))
            }
        }
    }

    fn signed_by(&self, iss: &str, how: &str) -> String {
        let algorithm = self.statement.header().algorithm().map_or("?", |algorithm| algorithm.name());
        format!("{iss} ({algorithm}, {how})")
    }

    /// Returns the keys that the trust store lists for the issuer, and the key in the issuer's DID. The DID's key is tried
    /// for any `kid`.
    fn listed_keys(&self, iss: &str) -> Vec<CoseKey> {
        let mut keys: Vec<CoseKey> = self.known.iter().flat_map(|issuer| &issuer.keys).cloned().collect();
        if (!self.known.is_empty() || self.trust.self_certified)
            && let Ok(key) = PublicKey::from_did(iss)
        {
            let kid = self.statement.header().kid().map(|kid| kid.to_vec());
            keys.push(CoseKey { kid, ..CoseKey::bare(key) });
        }
        keys
    }

    /// Builds the path from the statement's certificate to a root that may bind the issuer. `None` if the protected
    /// header names no certificate, or the trust store has no root for the issuer.
    fn certified_key(&self, iss: &str) -> Result<Option<CertificationPath>, Check> {
        let header = self.statement.header();
        let anchors = self.anchors();
        if anchors.is_empty() || (header.x5chain().is_none() && header.x5t().is_none()) {
            return Ok(None);
        }
        let chain = header.x5chain().or_else(|| self.statement.unprotected_x5chain());
        let chain = chain.ok_or_else(|| {
            not_done(
                Code::CertificateMissing,
                "the statement names a certificate by hash and does not contain it",
            )
        })?;
        if let Some(named) = header.x5t() {
            check_thumbprint(&named.algorithm, &named.hash, chain.end_entity())
                .map_err(|why| bad_path(&why))?;
        }
        self.first_path(iss, chain, &anchors).map(Some)
    }

    /// Returns the first path that is valid at the time of registration and binds the issuer; if that time may be
    /// earlier, also a path that has ended.
    fn first_path(
        &self,
        iss: &str,
        chain: &X5Chain,
        anchors: &[CertificateAnchor<'q>],
    ) -> Result<CertificationPath, Check> {
        let ders: Vec<&[u8]> = chain.certificates().iter().map(|der| der.as_ref()).collect();
        let at = self.unsigned_time();
        let mut refused = ChainError::UnknownIssuer;
        let mut unbound = false;
        for anchor in anchors {
            match verify_chain(&ders, std::slice::from_ref(anchor.root), at, anchor.eku) {
                Ok(path) if anchor.binds(iss, &path) => return Ok(path),
                Ok(_) => unbound = true,
                Err(why) if refused == ChainError::UnknownIssuer => refused = why,
                Err(_) => {}
            }
        }
        Err(match refused {
            _ if unbound => {
                let detail = format!("the certificate does not name {iss:?}");
                Check::failed(NAME, Code::IssuerNotBound, detail)
            }
            ChainError::UnknownIssuer => not_done(Code::UnknownIssuer, "no path to a trusted root"),
            ChainError::Expired { .. } if self.registered.is_proven() => {
                return self.ended_path(iss, &ders, anchors).ok_or_else(|| bad_path(&refused));
            }
            why => bad_path(&why),
        })
    }

    /// Returns the first path that was valid before the latest time of registration and binds the issuer.
    fn ended_path(
        &self,
        iss: &str,
        ders: &[&[u8]],
        anchors: &[CertificateAnchor<'q>],
    ) -> Option<CertificationPath> {
        let at = self.unsigned_time();
        let ended = |anchor: &CertificateAnchor<'_>| {
            let path = verify_chain_at_any_time(ders, std::slice::from_ref(anchor.root), anchor.eku).ok()?;
            (anchor.binds(iss, &path) && path.validity().not_before <= at).then_some(path)
        };
        anchors.iter().find_map(ended)
    }

    /// Returns the time of registration for certificates, which have no dates before 1970.
    fn unsigned_time(&self) -> u64 {
        u64::try_from(self.registered.at()).unwrap_or(0)
    }

    fn anchors(&self) -> Vec<CertificateAnchor<'q>> {
        let listed = self.known.iter().flat_map(|issuer| {
            let eku = issuer.eku.as_deref();
            issuer.roots.iter().map(move |root| CertificateAnchor { root, eku, any_name: true })
        });
        let by_name = self.trust.roots.iter().map(|root| CertificateAnchor {
            root: &root.certificate,
            eku: root.eku.as_deref(),
            any_name: false,
        });
        listed.chain(by_name).collect()
    }
}

struct CertificateAnchor<'q> {
    root: &'q RootCertificate,
    eku: Option<&'q str>,
    /// `true` if the trust store binds the issuer to this root, so that the certificate need not name the issuer.
    any_name: bool,
}

impl CertificateAnchor<'_> {
    /// Returns `true` if a certificate below this root may sign for the issuer.
    fn binds(&self, iss: &str, path: &CertificationPath) -> bool {
        path.speaks_for(iss) || (self.any_name && path.may_be(iss))
    }
}

/// A statement with the detached payload that its signature covers.
struct Signature<'s> {
    statement: &'s SignedStatement,
    detached: Option<Vec<u8>>,
}

impl<'s> Signature<'s> {
    fn of(statement: &'s SignedStatement, given: Option<&[u8]>) -> Result<Self, Check> {
        match payload::detached(statement, given) {
            Detached::Attached => Ok(Self { statement, detached: None }),
            Detached::Given(payload) => Ok(Self { statement, detached: Some(payload) }),
            Detached::Missing => {
                Err(not_done(Code::PayloadMissing, "the signature covers a payload that was not given"))
            }
            Detached::UnsupportedHash(algorithm) => {
                let detail = format!("hash algorithm {algorithm} is not computed here");
                Err(not_done(Code::UnsupportedHash, &detail))
            }
        }
    }

    fn verify(&self, key: &PublicKey) -> Result<(), SignatureError> {
        self.statement.verify_with(key, self.detached.as_deref())
    }
}

fn not_done(code: Code, detail: &str) -> Check {
    Check::not_done(NAME, code, detail)
}

fn invalid(why: &SignatureError) -> Check {
    Check::failed(NAME, Code::IssuerSignatureInvalid, why.to_string())
}

fn bad_path(why: &ChainError) -> Check {
    Check::failed(NAME, Code::CertificatePathInvalid, why.to_string())
}
