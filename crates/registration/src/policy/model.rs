//! The contents of a valid policy as typed values.

use scitt::Algorithm;
use scitt::header::{ContentType, Label};
use scitt::x509::RootCertificate;

use super::claim::CwtClaim;
use super::condition::Condition;
use super::index::IndexRules;
use super::log_end::LogEnd;
use super::required::Required;
use crate::bound_key::BoundKey;
use crate::pattern::IssuerPattern;
use crate::profile::TypeProfile;

/// The contents of a policy, on which all decisions depend.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// The `iss` of the log's receipts and of its operator statements.
    pub iss: String,
    /// The log's origin: its name in checkpoints, and the `sub` of its operator statements.
    pub origin: String,
    /// The revision number: 0 for entry 0, and one more for each later policy of the log.
    pub revision: u64,
    /// The operator keys, which sign policies, erasures and other operator statements.
    pub operators: Vec<BoundKey>,
    /// The number of operators who must agree to irreversible statements.
    pub required: Required,
    /// When the log takes no more entries.
    pub log_end: LogEnd,
    /// The rules for the search index; `None` if the log commits to none.
    pub index: Option<IndexRules>,
    /// Issuers with their keys.
    pub issuers: Vec<Issuer>,
    /// The `did:key` issuers that are admitted.
    pub did_key: SelfCertified,
    /// The `did:jwk` issuers that are admitted.
    pub did_jwk: SelfCertified,
    /// Trust anchors for issuers with certificates.
    pub anchors: Vec<Anchor>,
    /// The admitted content types. All others are refused.
    pub types: Vec<TypeRule>,
}

/// An issuer with its keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Issuer {
    /// The issuer's `iss`.
    pub iss: String,
    /// The issuer's keys.
    pub keys: Vec<BoundKey>,
}

/// Admitted issuers whose `iss` is a DID that contains their key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelfCertified {
    /// All such issuers.
    Open,
    /// The listed issuers only.
    Listed(Vec<String>),
}

impl SelfCertified {
    /// Returns whether this issuer is admitted.
    pub fn admits(&self, iss: &str) -> bool {
        match self {
            SelfCertified::Open => true,
            SelfCertified::Listed(names) => names.iter().any(|name| name == iss),
        }
    }
}

/// Root certificates, with the issuers that they may certify.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor {
    /// The name of the anchor in the policy.
    pub name: String,
    /// The root certificates.
    pub roots: Vec<RootCertificate>,
    /// True if `iss` may be a subject alternative name of the certificate, or a did:x509 that it satisfies.
    pub san: bool,
    /// Patterns of issuers for which any certificate under these roots is accepted.
    pub issuers: Vec<IssuerPattern>,
    /// The extended key usage (a dotted OID) that the certificate must have, if set.
    pub eku: Option<String>,
}

/// A content type with the requirements on its statements.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeRule {
    /// The name of the rule, which is stored with the entries that it admitted.
    pub name: String,
    /// The content type.
    pub content_type: ContentType,
    /// The profile that parses the payload, with its options.
    pub profile: TypeProfile,
    /// Patterns of admitted issuers; empty for all issuers that can be authenticated.
    pub issuers: Vec<IssuerPattern>,
    /// Admitted signature algorithms, under either identifier (ES256 and ESP256 are equal); empty for all supported
    /// ones.
    pub algorithms: Vec<Algorithm>,
    /// Maximum size in bytes of the statement, and of a detached payload.
    pub max_size: u64,
    /// True if the payload may be detached.
    pub detached: bool,
    /// True if a statement may contain the payload's hash instead (RFC 9995).
    pub hash_envelope: bool,
    /// Required CWT claims in addition to `iss` and `sub`.
    pub claims: Vec<CwtClaim>,
    /// Labels of further required protected header parameters.
    pub headers: Vec<Label>,
    /// The operator's conditions, which are evaluated in order after all other checks.
    pub conditions: Vec<Condition>,
    /// True if a detached payload is stored with the entry.
    pub keep_payload: bool,
    /// Retention period of the bytes in seconds after the registration; `None` for ever.
    pub retention: Option<u64>,
}
