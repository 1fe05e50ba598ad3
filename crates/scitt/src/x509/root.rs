//! Trusted root certificates, at which a path may end.

use std::fmt;

use rustls_pki_types::{CertificateDer, TrustAnchor};
use webpki::anchor_from_trusted_cert;
use x509_cert::der::pem;

use super::{ChainError, sha256_thumbprint};
use crate::key::to_pem;
use crate::limits::CERTIFICATE_BYTES;

/// A certificate that is configured as trusted. Parsing checks its form, not its signature.
#[derive(Clone)]
pub struct RootCertificate {
    der: Vec<u8>,
    anchor: TrustAnchor<'static>,
}

impl RootCertificate {
    /// Parses a certificate in DER.
    ///
    /// # Errors
    /// Returns [`ChainError::Malformed`] if it is not a certificate or exceeds [`CERTIFICATE_BYTES`].
    pub fn from_der(der: &[u8]) -> Result<Self, ChainError> {
        let malformed = |why: String| ChainError::Malformed { position: 0, why };
        if der.len() > CERTIFICATE_BYTES {
            return Err(malformed(format!("over {CERTIFICATE_BYTES} bytes")));
        }
        let certificate = CertificateDer::from(der);
        let anchor = anchor_from_trusted_cert(&certificate).map_err(|error| malformed(error.to_string()))?;
        Ok(Self { der: der.to_vec(), anchor: anchor.to_owned() })
    }

    /// Parses one PEM `CERTIFICATE` block.
    ///
    /// # Errors
    /// Returns [`ChainError::Malformed`] if it is another block, or no certificate.
    pub fn from_pem(text: &str) -> Result<Self, ChainError> {
        let malformed = |why: String| ChainError::Malformed { position: 0, why };
        let (label, der) =
            pem::decode_vec(text.as_bytes()).map_err(|error| malformed(format!("PEM: {error}")))?;
        match label {
            "CERTIFICATE" => Self::from_der(&der),
            other => Err(malformed(format!("PEM: expected CERTIFICATE, found {other:.40}"))),
        }
    }

    /// Returns the certificate in DER, as parsed.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Returns the PEM `CERTIFICATE` block, with Unix line ends.
    pub fn to_pem(&self) -> String {
        to_pem("CERTIFICATE", &self.der)
    }

    /// Returns SHA-256 of the DER certificate.
    pub fn sha256(&self) -> [u8; 32] {
        sha256_thumbprint(&self.der)
    }

    pub(super) fn anchor(&self) -> &TrustAnchor<'static> {
        &self.anchor
    }
}

impl PartialEq for RootCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for RootCertificate {}

impl fmt::Debug for RootCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = data_encoding::HEXLOWER.encode(&self.sha256());
        write!(f, "RootCertificate(sha256 {hex})")
    }
}
