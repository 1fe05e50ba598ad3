//! Why a statement's issuer could not be established.

use scitt::header::Incomplete;
use scitt::x509::ChainError;
use scitt::{Malformed, SignatureError};

use crate::violation::{Place, RuleName, Violation, quote};

/// A statement that is nobody's, as far as the policy can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untrusted {
    /// A header that RFC 9943 requires is absent.
    #[error("{0}")]
    Incomplete(Incomplete),
    /// The signature is of an algorithm we do not speak.
    #[error("algorithm {0} is not accepted")]
    Algorithm(i64),
    /// The payload is detached and did not come along.
    #[error("the payload is detached and did not come along")]
    PayloadMissing,
    /// A payload came beside a statement that holds one.
    #[error("a payload came along, but the statement holds its own")]
    PayloadTwice,
    /// A detached digest does not fit the hash algorithm of its envelope.
    #[error("{0}")]
    Digest(Malformed),
    /// The policy knows no key of this issuer.
    #[error("the policy binds no key to the issuer {}", quote(.iss))]
    IssuerUnknown {
        /// The `iss` claimed.
        iss: String,
    },
    /// The issuer certifies itself, and the policy does not let it.
    #[error("the policy does not list the issuer {}", quote(.iss))]
    IssuerNotListed {
        /// The `iss` claimed.
        iss: String,
    },
    /// A DID that holds no key we can use.
    #[error("the issuer {} holds no key we can use: {why}", quote(.iss))]
    IssuerUnusable {
        /// The `iss` claimed.
        iss: String,
        /// What is wrong with it.
        why: String,
    },
    /// The kid is none of the issuer's.
    #[error("kid {kid} is no key of the issuer {}", quote(.iss))]
    KeyNotBound {
        /// The `iss` claimed.
        iss: String,
        /// The kid, in hexadecimal.
        kid: String,
    },
    /// The certificate's key is not the one the policy binds to the issuer.
    #[error("the certificate holds another key than the one bound to the issuer {}", quote(.iss))]
    KeysDisagree {
        /// The `iss` claimed.
        iss: String,
    },
    /// The signature does not verify.
    #[error("{0}")]
    Signature(SignatureError),
    /// A certificate hash without its certificate.
    #[error("x5t names a certificate that did not come along")]
    ChainMissing,
    /// The certificate is not the one that x5t names.
    #[error("{0}")]
    CertificateHash(ChainError),
    /// The certificates lead to no root of the policy.
    #[error("{0}")]
    Chain(ChainError),
    /// The certificate is good, but does not speak for this issuer.
    #[error("the certificate does not speak for the issuer {}", quote(.iss))]
    CertificateNotBound {
        /// The `iss` claimed.
        iss: String,
    },
    /// A statement of the operator that is not the log's own.
    #[error("policies and other statements of this log's operator are issued by {}", quote(.log))]
    NotTheLog {
        /// The log's own `iss`.
        log: String,
    },
}

impl Untrusted {
    /// The rule's name, which never changes.
    pub fn rule(&self) -> RuleName {
        RuleName::fixed(match self {
            Untrusted::Incomplete(_) => "required-header",
            Untrusted::Algorithm(_) => "algorithm-not-accepted",
            Untrusted::PayloadMissing => "payload-missing",
            Untrusted::PayloadTwice => "payload-twice",
            Untrusted::Digest(_) => "hash-envelope-digest",
            Untrusted::IssuerUnknown { .. } => "issuer-unknown",
            Untrusted::IssuerNotListed { .. } => "issuer-not-listed",
            Untrusted::IssuerUnusable { .. } => "issuer-unusable",
            Untrusted::KeyNotBound { .. } | Untrusted::KeysDisagree { .. } => "key-not-bound-to-issuer",
            Untrusted::Signature(_) => "signature",
            Untrusted::ChainMissing => "chain-missing",
            Untrusted::CertificateHash(_) => "certificate-hash",
            Untrusted::Chain(_) => "chain",
            Untrusted::CertificateNotBound { .. } => "certificate-not-bound-to-issuer",
            Untrusted::NotTheLog { .. } => "policy-issuer",
        })
    }

    /// Where in the statement it shows.
    pub fn place(&self) -> Place {
        Place::protected(match self {
            Untrusted::Incomplete(what) => what.label_path(),
            Untrusted::Algorithm(_) => "1",
            Untrusted::KeyNotBound { .. } => "4",
            Untrusted::ChainMissing | Untrusted::CertificateHash(_) => "34",
            Untrusted::Chain(_) | Untrusted::KeysDisagree { .. } => "33",
            Untrusted::Signature(_) => return Place::Signature,
            Untrusted::PayloadMissing | Untrusted::PayloadTwice | Untrusted::Digest(_) => {
                return Place::payload("");
            }
            Untrusted::IssuerUnknown { .. }
            | Untrusted::IssuerNotListed { .. }
            | Untrusted::IssuerUnusable { .. }
            | Untrusted::CertificateNotBound { .. }
            | Untrusted::NotTheLog { .. } => "15/1",
        })
    }

    /// The same as a rule that was broken.
    pub fn violation(&self) -> Violation {
        Violation { rule: self.rule(), place: self.place(), detail: self.to_string() }
    }
}

impl From<SignatureError> for Untrusted {
    fn from(error: SignatureError) -> Self {
        match error {
            SignatureError::UnknownAlgorithm(id) => Untrusted::Algorithm(id),
            SignatureError::NoAlgorithm => Untrusted::Incomplete(Incomplete::Algorithm),
            SignatureError::PayloadMissing => Untrusted::PayloadMissing,
            SignatureError::PayloadTwice => Untrusted::PayloadTwice,
            other => Untrusted::Signature(other),
        }
    }
}
