//! Whose statement is it? The only door to [`Authenticated`].
//!
//! RFC 9943, section 5.1.1.1: the signature is checked with a key of the issuer that the protected header names, and
//! the policy says which keys those are. Three ways lead from `iss` to a key:
//!
//! - the policy lists it: `kid` picks one of the issuer's keys;
//! - `iss` is a did:key or did:jwk that the policy admits: the name is the key;
//! - x5chain, or x5t and a chain that came along: a path to a root of the policy, whose certificate speaks for `iss`
//!   (a subject alternative name, a did:x509 that it satisfies, or the anchor lists it). If the policy also lists a key
//!   for that `kid`, it must be the same.
//!
//! The log's own `iss` is its operator: with the content types of the operator's statements, and only then, operator keys count.
//!
//! Nothing a statement names is fetched: no did:web, x5u, jku or payload-location. There is no clock: certificates
//! answer with the interval in which they are valid. A kid-signed statement's unprotected x5chain is ignored, which
//! RFC 9943 leaves optional.

use merkle::EntryDigest;
use scitt::x509::{self, ChainError, VerifiedChain};
use scitt::{Algorithm, Header, Label, PublicKey, SignedStatement, X5Chain};

use crate::decision::{Bound, TimeWindow};
use crate::operator::is_operator_statement;
use crate::policy::{Anchor, BoundKey, Contents, Policy};
use crate::untrusted::Untrusted;
use crate::violation::{Place, RuleName};

/// The number under which an unprotected x5chain (COSE_X509) is kept beside its entry.
pub const COLLATERAL_X5CHAIN: u8 = 1;
/// The number under which a detached payload is kept beside its entry.
pub const COLLATERAL_PAYLOAD: u8 = 2;

/// What came beside a statement and is not part of its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'s> {
    /// The payload, when the statement's is detached.
    pub payload: Option<&'s [u8]>,
    /// The chain kept from the first time, when only the statement's bytes are left. Otherwise
    /// the statement's own unprotected chain is used.
    pub x5chain: Option<&'s X5Chain>,
}

/// A statement whose issuer is established. Only [`authenticate`] makes one that leaves this crate.
#[derive(Clone, Debug)]
pub struct Authenticated<'s> {
    statement: &'s SignedStatement,
    payload: &'s [u8],
    iss: &'s str,
    sub: &'s str,
    algorithm: Algorithm,
    established: Established<'s>,
}

#[derive(Clone, Debug)]
struct Established<'s> {
    key: PublicKey,
    method: Method,
    validity: TimeWindow,
    collateral: Option<&'s X5Chain>,
}

/// How the key was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The policy binds it to the issuer.
    Bound,
    /// The issuer is a did:key.
    DidKey,
    /// The issuer is a did:jwk.
    DidJwk,
    /// A certificate.
    Certificate,
    /// It is an operator's, and the statement one of the operator.
    Operator,
}

impl Method {
    /// The method's name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Bound => "kid",
            Method::DidKey => "did:key",
            Method::DidJwk => "did:jwk",
            Method::Certificate => "x5chain",
            Method::Operator => "operator",
        }
    }
}

impl<'s> Authenticated<'s> {
    /// The statement.
    pub fn statement(&self) -> &'s SignedStatement {
        self.statement
    }

    /// Its protected header.
    pub fn header(&self) -> &'s Header {
        self.statement.header()
    }

    /// Its digest.
    pub fn digest(&self) -> EntryDigest {
        self.statement.digest()
    }

    /// The signed payload, wherever it came from.
    pub fn payload(&self) -> &'s [u8] {
        self.payload
    }

    /// Who says it.
    pub fn iss(&self) -> &'s str {
        self.iss
    }

    /// What it is about.
    pub fn sub(&self) -> &'s str {
        self.sub
    }

    /// How it is signed.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key that signed.
    pub fn key(&self) -> &PublicKey {
        &self.established.key
    }

    /// How that key was found.
    pub fn method(&self) -> Method {
        self.established.method
    }

    /// The chain that came unprotected and was needed: to be kept beside the entry as [`COLLATERAL_X5CHAIN`].
    pub fn collateral(&self) -> Option<&'s X5Chain> {
        self.established.collateral
    }

    pub(crate) fn bound(&self) -> Bound {
        Bound {
            rule: RuleName::fixed("chain-validity"),
            place: Place::protected("33"),
            window: self.established.validity,
        }
    }
}

/// Establishes whose statement this is under a policy: the signature verifies, and its key is the issuer's.
pub fn authenticate<'s>(
    statement: &'s SignedStatement,
    beside: Beside<'s>,
    policy: &Policy,
) -> Result<Authenticated<'s>, Untrusted> {
    let header = statement.header();
    let identity = header.require_scitt().map_err(Untrusted::Incomplete)?;
    let algorithm = header.algorithm().ok_or(Untrusted::Algorithm(header.alg().unwrap_or(0)))?;
    if statement.payload().is_some() && beside.payload.is_some() {
        return Err(Untrusted::PayloadTwice);
    }
    let payload = statement.payload().or(beside.payload).ok_or(Untrusted::PayloadMissing)?;
    if let Some(detached) = beside.payload {
        statement.check_detached(detached).map_err(Untrusted::Digest)?;
    }
    let established = establish(statement, beside, identity.iss, policy.contents())?;
    statement.verify_with(&established.key, beside.payload)?;
    Ok(Authenticated { statement, payload, iss: identity.iss, sub: identity.sub, algorithm, established })
}

/// The same without its signature, which nobody can check once the payload is gone. It stays in this crate: nothing is
/// admitted by it.
pub(crate) fn unsigned<'s>(
    statement: &'s SignedStatement,
    beside: Beside<'s>,
    policy: &Policy,
) -> Result<Authenticated<'s>, Untrusted> {
    let header = statement.header();
    let identity = header.require_scitt().map_err(Untrusted::Incomplete)?;
    let algorithm = header.algorithm().ok_or(Untrusted::Algorithm(header.alg().unwrap_or(0)))?;
    let established = establish(statement, beside, identity.iss, policy.contents())?;
    Ok(Authenticated {
        statement,
        payload: statement.payload().unwrap_or_default(),
        iss: identity.iss,
        sub: identity.sub,
        algorithm,
        established,
    })
}

/// Finds the key that must have signed.
fn establish<'s>(
    statement: &'s SignedStatement,
    beside: Beside<'s>,
    iss: &str,
    policy: &Contents,
) -> Result<Established<'s>, Untrusted> {
    let header = statement.header();
    if header.content_type().and_then(|name| name.as_text()).is_some_and(is_operator_statement) {
        return operator(header, iss, policy);
    }
    if header.x5chain().is_none() && header.x5t().is_none() {
        return named(header, iss, policy);
    }
    let certified = certified(statement, beside, iss, policy)?;
    match named(header, iss, policy) {
        Ok(named) if named.key != certified.key => Err(Untrusted::KeysDisagree { iss: iss.to_owned() }),
        // Every identifier that the policy knows must be checked (RFC 9943, section 5.1.1.1).
        Err(error @ Untrusted::KeyNotBound { .. }) if header.kid().is_some() => Err(error),
        Err(error @ (Untrusted::IssuerNotListed { .. } | Untrusted::IssuerUnusable { .. })) => Err(error),
        Ok(_) | Err(_) => Ok(certified),
    }
}

fn operator<'s>(header: &Header, iss: &str, policy: &Contents) -> Result<Established<'s>, Untrusted> {
    if iss != policy.iss {
        return Err(Untrusted::NotTheLog { log: policy.iss.clone() });
    }
    pick(&policy.operators, header, iss).map(|key| Established::of(key, Method::Operator))
}

/// By name alone: the policy lists the issuer, or its name is its key.
fn named<'s>(header: &Header, iss: &str, policy: &Contents) -> Result<Established<'s>, Untrusted> {
    if iss.starts_with("did:key:") {
        return self_certified(iss, policy.did_key.admits(iss), Method::DidKey);
    }
    if iss.starts_with("did:jwk:") {
        return self_certified(iss, policy.did_jwk.admits(iss), Method::DidJwk);
    }
    let issuer = policy.issuers.iter().find(|issuer| issuer.iss == iss);
    let issuer = issuer.ok_or_else(|| Untrusted::IssuerUnknown { iss: iss.to_owned() })?;
    pick(&issuer.keys, header, iss).map(|key| Established::of(key, Method::Bound))
}

fn self_certified<'s>(iss: &str, admitted: bool, method: Method) -> Result<Established<'s>, Untrusted> {
    if !admitted {
        return Err(Untrusted::IssuerNotListed { iss: iss.to_owned() });
    }
    let key = PublicKey::from_did(iss);
    let key =
        key.map_err(|error| Untrusted::IssuerUnusable { iss: iss.to_owned(), why: error.to_string() })?;
    Ok(Established::of(&key, method))
}

fn pick<'p>(keys: &'p [BoundKey], header: &Header, iss: &str) -> Result<&'p PublicKey, Untrusted> {
    let kid = header.kid().map(|kid| kid.as_ref()).unwrap_or_default();
    let bound = keys.iter().find(|bound| bound.kid == kid);
    bound
        .map(|bound| &bound.key)
        .ok_or_else(|| Untrusted::KeyNotBound { iss: iss.to_owned(), kid: short_hex(kid) })
}

fn short_hex(kid: &[u8]) -> String {
    let hex = data_encoding::HEXLOWER.encode(&kid[..kid.len().min(40)]);
    if kid.len() > 40 { format!("{hex}…") } else { hex }
}

impl Established<'_> {
    fn of(key: &PublicKey, method: Method) -> Self {
        Established { key: key.clone(), method, validity: TimeWindow::ALWAYS, collateral: None }
    }
}

/// By certificate: a path to a root, and a certificate that speaks for the issuer.
fn certified<'s>(
    statement: &'s SignedStatement,
    beside: Beside<'s>,
    iss: &str,
    policy: &Contents,
) -> Result<Established<'s>, Untrusted> {
    let header = statement.header();
    let unprotected = beside.x5chain.or(statement.unprotected_x5chain());
    let collateral = if header.x5chain().is_some() { None } else { unprotected };
    let chain = header.x5chain().or(collateral).ok_or(Untrusted::ChainMissing)?;
    check_certificate_hash(header, chain)?;
    let verified = speaking_for(iss, chain, &policy.anchors)?;
    let validity = verified.validity();
    let validity = TimeWindow { not_before: Some(validity.not_before), not_after: Some(validity.not_after) };
    Ok(Established { key: verified.key().clone(), method: Method::Certificate, validity, collateral })
}

fn check_certificate_hash(header: &Header, chain: &X5Chain) -> Result<(), Untrusted> {
    let Some(named) = header.x5t() else { return Ok(()) };
    let Label::Int(algorithm) = named.algorithm else {
        return Err(Untrusted::CertificateHash(ChainError::ThumbprintHash(0)));
    };
    x509::check_thumbprint(algorithm, &named.hash, chain.end_entity()).map_err(Untrusted::CertificateHash)
}

/// The first anchor that vouches for this chain and this issuer.
fn speaking_for(iss: &str, chain: &X5Chain, anchors: &[Anchor]) -> Result<VerifiedChain, Untrusted> {
    let ders: Vec<&[u8]> = chain.certificates().iter().map(|der| der.as_ref()).collect();
    let mut why = Untrusted::Chain(ChainError::UnknownIssuer);
    for anchor in anchors {
        match x509::verify_chain_at_any_time(&ders, &anchor.roots, anchor.eku.as_deref()) {
            Ok(verified) if anchor.binds(iss, &verified) => return Ok(verified),
            Ok(_) => why = Untrusted::CertificateNotBound { iss: iss.to_owned() },
            Err(ChainError::UnknownIssuer) => {}
            Err(error) if matches!(why, Untrusted::Chain(ChainError::UnknownIssuer)) => {
                why = Untrusted::Chain(error)
            }
            Err(_) => {}
        }
    }
    Err(why)
}

impl Anchor {
    fn binds(&self, iss: &str, verified: &VerifiedChain) -> bool {
        let listed = || self.issuers.iter().any(|pattern| pattern.fits(iss));
        verified.may_be(iss) && ((self.san && verified.speaks_for(iss)) || listed())
    }
}
