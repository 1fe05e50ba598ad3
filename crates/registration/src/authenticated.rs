//! A statement whose issuer is authenticated: what the profiles and the decision see of it.

use merkle::EntryDigest;
use scitt::{Algorithm, Header, PublicKey, SignedStatement, X5Chain};

use crate::content_types::{INDEX_HEAD_CONTENT_TYPE, essence, is_operator_statement};
use crate::time_window::{Bound, TimeWindow};
use crate::violation::{Place, RuleName};

/// The number under which an unprotected x5chain (`COSE_X509`) is stored with its entry.
pub const COLLATERAL_X5CHAIN: u8 = 1;
/// The number under which a detached payload is stored with its entry.
pub const COLLATERAL_PAYLOAD: u8 = 2;

/// A statement whose issuer is authenticated. Outside of this crate, only [`authenticate`](crate::authenticate()) creates one.
#[derive(Clone, Debug)]
pub struct Authenticated<'s> {
    pub(crate) statement: &'s SignedStatement,
    pub(crate) payload: &'s [u8],
    pub(crate) iss: &'s str,
    pub(crate) sub: &'s str,
    pub(crate) algorithm: Algorithm,
    pub(crate) established: Established<'s>,
}

/// The key of the issuer, and the way in which it was found.
#[derive(Clone, Debug)]
pub(crate) struct Established<'s> {
    pub(crate) key: PublicKey,
    pub(crate) method: Method,
    pub(crate) validity: TimeWindow,
    pub(crate) collateral: Option<&'s X5Chain>,
}

/// The way in which the issuer's key was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The policy lists the key for the issuer.
    Bound,
    /// The issuer is a `did:key` and contains the key.
    DidKey,
    /// The issuer is a `did:jwk` and contains the key.
    DidJwk,
    /// The key is in a certificate that names the issuer.
    Certificate,
    /// The key is an operator key, and the statement an operator statement.
    Operator,
    /// The policy lists the key for the search index, and the statement is a head of it.
    Index,
}

impl Method {
    /// Returns the only way in which a statement of this issuer with this header can be authenticated; the policy
    /// decides whether it is. RFC 9943, section 5.1.1.1.
    pub(crate) fn of(header: &Header, iss: &str) -> Method {
        let media_type = header.content_type().and_then(|name| name.as_text());
        match media_type.filter(|media_type| is_operator_statement(media_type)) {
            Some(media_type) if essence(media_type) == INDEX_HEAD_CONTENT_TYPE => Method::Index,
            Some(_) => Method::Operator,
            None if header.x5chain().is_some() || header.x5t().is_some() => Method::Certificate,
            None => Method::of_name(iss),
        }
    }

    /// Returns the way from an issuer's name to its key, without a certificate.
    pub(crate) fn of_name(iss: &str) -> Method {
        if iss.starts_with("did:key:") {
            Method::DidKey
        } else if iss.starts_with("did:jwk:") {
            Method::DidJwk
        } else {
            Method::Bound
        }
    }

    /// The method's name in facts and in conditions (`authenticated_by`).
    pub fn name(self) -> &'static str {
        match self {
            Method::Bound => "kid",
            Method::DidKey => "did:key",
            Method::DidJwk => "did:jwk",
            Method::Certificate => "x5chain",
            Method::Operator => "operator",
            Method::Index => "index",
        }
    }
}

impl<'s> Authenticated<'s> {
    /// The signed statement.
    pub fn statement(&self) -> &'s SignedStatement {
        self.statement
    }

    /// The protected header.
    pub fn header(&self) -> &'s Header {
        self.statement.header()
    }

    /// The digest of the statement.
    pub fn digest(&self) -> EntryDigest {
        self.statement.digest()
    }

    /// The signed payload, whether attached or detached.
    pub fn payload(&self) -> &'s [u8] {
        self.payload
    }

    /// The authenticated issuer (`iss`).
    pub fn iss(&self) -> &'s str {
        self.iss
    }

    /// The subject (`sub`).
    pub fn sub(&self) -> &'s str {
        self.sub
    }

    /// The signature algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The public key that verified the signature.
    pub fn key(&self) -> &PublicKey {
        &self.established.key
    }

    /// The way in which the key was found.
    pub fn method(&self) -> Method {
        self.established.method
    }

    /// The unprotected certificate chain, if the authentication used it: it must be stored with the entry as
    /// [`COLLATERAL_X5CHAIN`].
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

impl Established<'_> {
    pub(crate) fn of(key: &PublicKey, method: Method) -> Self {
        Established { key: key.clone(), method, validity: TimeWindow::ALWAYS, collateral: None }
    }
}
