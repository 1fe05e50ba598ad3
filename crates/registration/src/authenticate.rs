//! Authentication of a statement's issuer. [`authenticate`] is the only public constructor of [`Authenticated`].
//!
//! RFC 9943, section 5.1.1.1: the signature is verified with a key of the issuer in the protected header, and the
//! policy determines the issuer's keys. There are three ways from `iss` to a key:
//!
//! - the policy lists the issuer: `kid` selects one of its keys;
//! - `iss` is a did:key or did:jwk that the policy admits: the name contains the key;
//! - x5chain, or x5t and a submitted chain: a path to a trust anchor of the policy, whose certificate names `iss`
//!   (a subject alternative name, a did:x509 that it satisfies, or a listing in the anchor). If the policy also lists a
//!   key for that `kid`, the two must be equal.
//!
//! The log's own `iss` is its operator: operator keys are valid for the content types of operator statements, and only
//! for these. Heads of the search index are signed with keys that the policy lists for the index.
//!
//! References in a statement are never fetched: no did:web, x5u, jku or payload-location. There is no clock: a
//! certificate contributes the interval of its validity. The unprotected x5chain of a statement signed with a `kid` is
//! ignored, which RFC 9943 permits.

use scitt::x509::{self, CertificationPath, ChainError};
use scitt::{Header, PublicKey, SignedStatement, X5Chain};

use crate::authenticated::{Authenticated, Established, Method};
use crate::bound_key::BoundKey;
use crate::policy::{Anchor, Contents, Policy};
use crate::time_window::TimeWindow;
use crate::untrusted::Untrusted;

/// Parts submitted or stored with a statement that are not part of its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SideData<'s> {
    /// The payload, if the statement's payload is detached.
    pub payload: Option<&'s [u8]>,
    /// The certificate chain that was stored at registration, if only the statement's bytes are left. If it is `None`,
    /// the statement's own unprotected chain is used.
    pub x5chain: Option<&'s X5Chain>,
}

/// Authenticates a statement under a policy: the signature must verify, and its key must be one of the issuer's.
pub fn authenticate<'s>(
    statement: &'s SignedStatement,
    side_data: SideData<'s>,
    policy: &Policy,
) -> Result<Authenticated<'s>, Untrusted> {
    let header = statement.header();
    let identity = header.require_scitt().map_err(Untrusted::Incomplete)?;
    let algorithm = header.algorithm().ok_or(Untrusted::Algorithm(header.alg().unwrap_or(0)))?;
    if statement.payload().is_some() && side_data.payload.is_some() {
        return Err(Untrusted::PayloadTwice);
    }
    let payload = statement.payload().or(side_data.payload).ok_or(Untrusted::PayloadMissing)?;
    if let Some(detached) = side_data.payload {
        statement.check_detached(detached).map_err(Untrusted::Digest)?;
    }
    let established = establish(statement, side_data, identity.iss, policy.contents())?;
    statement.verify_with(&established.key, side_data.payload)?;
    Ok(Authenticated { statement, payload, iss: identity.iss, sub: identity.sub, algorithm, established })
}

/// Determines the issuer without verifying the signature, which is impossible after the payload was discarded. It is
/// private to this crate because its result must not admit a statement.
pub(crate) fn unsigned<'s>(
    statement: &'s SignedStatement,
    side_data: SideData<'s>,
    policy: &Policy,
) -> Result<Authenticated<'s>, Untrusted> {
    let header = statement.header();
    let identity = header.require_scitt().map_err(Untrusted::Incomplete)?;
    let algorithm = header.algorithm().ok_or(Untrusted::Algorithm(header.alg().unwrap_or(0)))?;
    let established = establish(statement, side_data, identity.iss, policy.contents())?;
    Ok(Authenticated {
        statement,
        payload: statement.payload().unwrap_or_default(),
        iss: identity.iss,
        sub: identity.sub,
        algorithm,
        established,
    })
}

/// Finds the key that must have signed the statement.
fn establish<'s>(
    statement: &'s SignedStatement,
    side_data: SideData<'s>,
    iss: &str,
    policy: &Contents,
) -> Result<Established<'s>, Untrusted> {
    let header = statement.header();
    match Method::of(header, iss) {
        method @ Method::Operator => of_the_log(header, &policy.operators, method, iss, policy),
        method @ Method::Index => {
            let keys = policy.index.as_ref().map_or(&[][..], |index| &index.keys);
            of_the_log(header, keys, method, iss, policy)
        }
        Method::Certificate => certified_and_named(statement, side_data, iss, policy),
        Method::Bound | Method::DidKey | Method::DidJwk => named(header, iss, policy),
    }
}

/// Finds the key of a statement of the log itself among its keys for such statements.
fn of_the_log<'s>(
    header: &Header,
    keys: &[BoundKey],
    method: Method,
    iss: &str,
    policy: &Contents,
) -> Result<Established<'s>, Untrusted> {
    if iss != policy.iss {
        return Err(Untrusted::NotTheLog { log: policy.iss.clone() });
    }
    pick(keys, header, iss).map(|key| Established::of(key, method))
}

/// Finds the key by certificate. A key that the policy lists for the issuer as well must be the same.
fn certified_and_named<'s>(
    statement: &'s SignedStatement,
    side_data: SideData<'s>,
    iss: &str,
    policy: &Contents,
) -> Result<Established<'s>, Untrusted> {
    let header = statement.header();
    let certified = certified(statement, side_data, iss, policy)?;
    match named(header, iss, policy) {
        Ok(named) if named.key != certified.key => Err(Untrusted::KeysDisagree { iss: iss.to_owned() }),
        // Every identifier that the policy knows must be checked (RFC 9943, section 5.1.1.1).
        Err(error @ Untrusted::KeyNotBound { .. }) if header.kid().is_some() => Err(error),
        Err(error @ (Untrusted::IssuerNotListed { .. } | Untrusted::IssuerUnusable { .. })) => Err(error),
        Ok(_) | Err(_) => Ok(certified),
    }
}

/// Finds the key by the issuer's name alone: the policy lists the issuer, or the name is a DID that contains the key.
fn named<'s>(header: &Header, iss: &str, policy: &Contents) -> Result<Established<'s>, Untrusted> {
    match Method::of_name(iss) {
        method @ Method::DidKey => self_certified(iss, policy.did_key.admits(iss), method),
        method @ Method::DidJwk => self_certified(iss, policy.did_jwk.admits(iss), method),
        method => listed(header, iss, policy, method),
    }
}

/// Finds the key that the policy lists for the issuer.
fn listed<'s>(
    header: &Header,
    iss: &str,
    policy: &Contents,
    method: Method,
) -> Result<Established<'s>, Untrusted> {
    let issuer = policy.issuers.iter().find(|issuer| issuer.iss == iss);
    let issuer = issuer.ok_or_else(|| Untrusted::IssuerUnknown { iss: iss.to_owned() })?;
    pick(&issuer.keys, header, iss).map(|key| Established::of(key, method))
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

/// Finds the key by certificate: a path to a trust anchor, and a certificate that names the issuer.
fn certified<'s>(
    statement: &'s SignedStatement,
    side_data: SideData<'s>,
    iss: &str,
    policy: &Contents,
) -> Result<Established<'s>, Untrusted> {
    let header = statement.header();
    let unprotected = side_data.x5chain.or(statement.unprotected_x5chain());
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
    x509::check_thumbprint(&named.algorithm, &named.hash, chain.end_entity())
        .map_err(Untrusted::CertificateHash)
}

/// Verifies the chain with the first anchor that accepts it for this issuer.
fn speaking_for(iss: &str, chain: &X5Chain, anchors: &[Anchor]) -> Result<CertificationPath, Untrusted> {
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
    fn binds(&self, iss: &str, verified: &CertificationPath) -> bool {
        let listed = || self.issuers.iter().any(|pattern| pattern.fits(iss));
        verified.may_be(iss) && ((self.san && verified.speaks_for(iss)) || listed())
    }
}
