//! X.509 issuers: verifies a certificate chain from a header up to a trusted root.
//!
//! Implements RFC 9360 (`x5chain`, `x5t`) as RFC 9943, section 6, uses it. All certificates of a header are untrusted
//! input. A path ends only at a configured [`RootCertificate`]; a self-signed certificate in a header never becomes
//! one. Paths are built by rustls-webpki at a time that is an argument, and the result carries the interval in which it
//! is valid ([`CertificationPath::validity`]), so that a decision can be repeated later.
//!
//! Certificates may be signed with ECDSA on P-256, P-384 or P-521, with Ed25519, or with RSA, which many authorities
//! still use. The end entity's own key must be one for statements, thus never RSA. The dates of a root are ignored: a
//! trust anchor is a name and a key.
//!
//! Not here: revocation (which needs the network), `x5u` and `x5bag`, and parsing of the COSE labels (`header`).

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
use crate::label::Label;
use crate::limits::CERTIFICATES;

pub use chain::{CertificationPath, Validity, is_oid, verify_chain, verify_chain_at_any_time};
pub use names::SubjectNames;
pub use root::RootCertificate;
pub use thumbprint::{SHA_256, check_thumbprint, sha256_thumbprint};

/// Error of a chain that does not lead to a trusted root, or does not allow its use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The chain has no certificate.
    #[error("the chain holds no certificate")]
    Empty,
    /// The chain has more than [`CERTIFICATES`] certificates.
    #[error("the chain holds {found} certificates, at most {CERTIFICATES} are read")]
    TooMany {
        /// Number of certificates found.
        found: usize,
    },
    /// A certificate cannot be parsed: broken DER, too large, or an unknown version.
    #[error("certificate {position} is malformed: {why}")]
    Malformed {
        /// Position in the chain; the end entity is 0.
        position: usize,
        /// Parser's error message.
        why: String,
    },
    /// A certificate on the path has expired.
    #[error("a certificate on the path expired at {not_after}, before {at} (unix seconds)")]
    Expired {
        /// Requested time in Unix seconds.
        at: u64,
        /// End of the certificate's validity in Unix seconds.
        not_after: u64,
    },
    /// A certificate on the path is not valid yet.
    #[error("a certificate on the path starts at {not_before}, after {at} (unix seconds)")]
    NotYetValid {
        /// Requested time in Unix seconds.
        at: u64,
        /// Start of the certificate's validity in Unix seconds.
        not_before: u64,
    },
    /// No path leads to a trusted root: the root is not trusted, or an intermediate is missing.
    #[error("no path from the end-entity certificate to a trusted root")]
    UnknownIssuer,
    /// The signature of a certificate does not verify with its issuer's key.
    #[error("a certificate on the path is not signed by its issuer")]
    BadSignature,
    /// A certificate is signed with an unsupported algorithm.
    #[error("a certificate on the path is signed with an algorithm that is not accepted")]
    SignatureAlgorithm,
    /// The end-entity certificate is a CA certificate.
    #[error("the end-entity certificate is marked as a CA")]
    LeafIsCa,
    /// The key usage of the end-entity certificate does not include signatures.
    #[error("the key usage of the end-entity certificate does not allow signatures")]
    KeyUsage,
    /// The end-entity certificate lacks the required extended key usage, given as an OID.
    #[error("the end-entity certificate lacks the extended key usage {0}")]
    ExtendedKeyUsage(String),
    /// Any other refusal of the path, with webpki's error message.
    #[error("the certificate path is refused: {0}")]
    Refused(String),
    /// The key of the end-entity certificate is not supported.
    #[error("key of the end-entity certificate: {0}")]
    Key(#[from] KeyError),
    /// `x5t` is the digest of another certificate.
    #[error("x5t is the digest of another certificate")]
    ThumbprintMismatch,
    /// `x5t` uses a hash algorithm other than SHA-256 (-16).
    #[error("x5t uses hash algorithm {0}: only SHA-256 (-16) is read")]
    ThumbprintHash(Label),
}
