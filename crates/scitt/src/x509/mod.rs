//! X.509 issuers: a certificate chain from a header to a root the reader already trusts.
//!
//! Serves RFC 9360 (`x5chain`, `x5t`) as RFC 9943 section 6 uses it. Every certificate of a
//! header is untrusted input; only a [`RootCertificate`] that was configured ends a path, and a
//! self-signed certificate in a header never becomes one. Paths are built by rustls-webpki at a
//! time that is an argument, and the answer carries the interval in which it stays the same
//! ([`VerifiedChain::validity`]), so a decision can be repeated later.
//!
//! Certificates may be signed with ECDSA on P-256, P-384 or P-521, with Ed25519, or with RSA, as many authorities
//! still do; the end entity's own key is one that statements are signed with, so never RSA. The dates of a root do
//! not count: an anchor is a name and a key.
//!
//! Not here: revocation (nothing is fetched), `x5u` and `x5bag`, and parsing of the COSE labels (`header`).

mod algorithms;
mod chain;
mod did_x509;
mod names;
mod root;
mod thumbprint;

#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::key::KeyError;
use crate::limits::CERTIFICATES;

pub use chain::{Validity, VerifiedChain, is_oid, verify_chain, verify_chain_at_any_time};
pub use names::SubjectNames;
pub use root::RootCertificate;
pub use thumbprint::{SHA_256, check_thumbprint, sha256_thumbprint};

/// Why a chain does not lead to a root, or does not allow what it is used for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChainError {
    /// There is no certificate.
    #[error("the chain holds no certificate")]
    Empty,
    /// There are more certificates than any sensible chain has.
    #[error("the chain holds {found} certificates, at most {CERTIFICATES} are read")]
    TooMany {
        /// Certificates found.
        found: usize,
    },
    /// A certificate is not one: broken DER, too large, an unknown version.
    #[error("certificate {position} is malformed: {why}")]
    Malformed {
        /// Place in the chain, the end entity being 0.
        position: usize,
        /// What the parser says.
        why: String,
    },
    /// A certificate on the path has ended.
    #[error("a certificate on the path expired at {not_after}, before {at} (unix seconds)")]
    Expired {
        /// The time asked about.
        at: u64,
        /// When the certificate ended.
        not_after: u64,
    },
    /// A certificate on the path has not begun.
    #[error("a certificate on the path starts at {not_before}, after {at} (unix seconds)")]
    NotYetValid {
        /// The time asked about.
        at: u64,
        /// When the certificate begins.
        not_before: u64,
    },
    /// No path leads to a trusted root: another root, or an intermediate is missing.
    #[error("no path from the end-entity certificate to a trusted root")]
    UnknownIssuer,
    /// A certificate is not signed by the key its issuer's name stands for.
    #[error("a certificate on the path is not signed by its issuer")]
    BadSignature,
    /// A certificate is signed in a way that is not verified here.
    #[error("a certificate on the path is signed with an algorithm that is not accepted")]
    SignatureAlgorithm,
    /// The end-entity certificate is a CA.
    #[error("the end-entity certificate is marked as a CA")]
    LeafIsCa,
    /// The end-entity certificate says its key does not sign documents.
    #[error("the key usage of the end-entity certificate does not allow signatures")]
    KeyUsage,
    /// The extended key usage that was asked for is absent.
    #[error("the end-entity certificate lacks the extended key usage {0}")]
    ExtendedKeyUsage(String),
    /// Any other refusal of the path, in the words of the path builder.
    #[error("the certificate path is refused: {0}")]
    Refused(String),
    /// The key of the end-entity certificate is none we can verify with.
    #[error("key of the end-entity certificate: {0}")]
    Key(#[from] KeyError),
    /// `x5t` names another certificate.
    #[error("x5t is the digest of another certificate")]
    ThumbprintMismatch,
    /// `x5t` uses a hash other than SHA-256 (-16).
    #[error("x5t uses hash algorithm {0}: only SHA-256 (-16) is read")]
    ThumbprintHash(i64),
}
