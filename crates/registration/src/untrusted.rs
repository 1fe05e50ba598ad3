//! Errors of [`authenticate`](crate::authenticate()): the reasons why a statement's issuer could not be authenticated.

use jose::members::quote;
use scitt::header::Incomplete;
use scitt::x509::ChainError;
use scitt::{Malformed, SignatureError};

use crate::violation::{Place, RuleName, Violation};

/// An error of [`authenticate`](crate::authenticate()): the statement is not proven to come from its `iss`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untrusted {
    /// A header that RFC 9943 requires is absent.
    #[error("{0}")]
    Incomplete(Incomplete),
    /// The signature algorithm (`alg`) is not supported.
    #[error("algorithm {0} is not accepted")]
    Algorithm(i64),
    /// The payload is detached and was not submitted with the statement.
    #[error("the payload is detached and was not sent")]
    PayloadMissing,
    /// A detached payload was submitted with a statement that contains its payload.
    #[error("a payload was sent with a statement that contains its payload")]
    PayloadTwice,
    /// The detached digest does not have the length of the hash envelope's algorithm.
    #[error("{0}")]
    Digest(Malformed),
    /// The policy lists no key of this issuer.
    #[error("the policy binds no key to the issuer {}", quote(.iss))]
    IssuerUnknown {
        /// The claimed `iss`.
        iss: String,
    },
    /// The issuer is a `did:key` or `did:jwk` that the policy does not admit.
    #[error("the policy does not list the issuer {}", quote(.iss))]
    IssuerNotListed {
        /// The claimed `iss`.
        iss: String,
    },
    /// The issuer is a DID that contains no supported key.
    #[error("the issuer {} holds no key we can use: {why}", quote(.iss))]
    IssuerUnusable {
        /// The claimed `iss`.
        iss: String,
        /// The error of the DID parser.
        why: String,
    },
    /// The policy lists no key with this `kid` for the issuer.
    #[error("kid {kid} is not a key of the issuer {}", quote(.iss))]
    KeyNotBound {
        /// The claimed `iss`.
        iss: String,
        /// The `kid` in hexadecimal, shortened to 40 bytes.
        kid: String,
    },
    /// The key in the certificate differs from the key that the policy lists for the issuer.
    #[error("the certificate holds another key than the one bound to the issuer {}", quote(.iss))]
    KeysDisagree {
        /// The claimed `iss`.
        iss: String,
    },
    /// The signature does not verify.
    #[error("{0}")]
    Signature(SignatureError),
    /// The header contains `x5t`, but the certificate was not submitted.
    #[error("x5t names a certificate that was not sent")]
    ChainMissing,
    /// The end-entity certificate does not match the thumbprint in `x5t`.
    #[error("{0}")]
    CertificateHash(ChainError),
    /// The certificate chain leads to no trust anchor of the policy.
    #[error("{0}")]
    Chain(ChainError),
    /// The certificate is valid, but it does not name this issuer.
    #[error("the certificate is not valid for the issuer {}", quote(.iss))]
    CertificateNotBound {
        /// The claimed `iss`.
        iss: String,
    },
    /// An operator statement whose `iss` is not the log's own.
    #[error("policies and other statements of this log's operator are issued by {}", quote(.log))]
    NotTheLog {
        /// The log's own `iss`.
        log: String,
    },
}

impl Untrusted {
    /// The name of the broken rule, which never changes.
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

    /// The place in the statement that breaks the rule.
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

    /// Returns this error as a [`Violation`].
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
