//! Subject alternative names of a certificate.

use x509_cert::Certificate;
use x509_cert::der::asn1::Ia5String;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::ChainError;

/// URI and DNS names in the subject alternative name extension, in order.
///
/// The common name is not read, as it binds no issuer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectNames {
    uris: Vec<String>,
    dns: Vec<String>,
}

impl SubjectNames {
    /// Returns the URIs as written.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Returns the DNS names as written, including wildcards, although these bind no issuer.
    pub fn dns(&self) -> &[String] {
        &self.dns
    }

    /// Returns `true` if the issuer `iss` is one of these names. A URI must be equal byte for byte, a DNS name up to
    /// ASCII case. Wildcards match nothing.
    pub(super) fn binds(&self, iss: &str) -> bool {
        self.uris.iter().any(|uri| uri == iss)
            || (!iss.contains('*') && self.dns.iter().any(|name| name.eq_ignore_ascii_case(iss)))
    }

    pub(super) fn of(certificate: &Certificate) -> Result<Self, ChainError> {
        let extension = certificate.tbs_certificate().get_extension::<SubjectAltName>().map_err(|error| {
            ChainError::Malformed { position: 0, why: format!("subject alternative name: {error}") }
        })?;
        let mut names = Self::default();
        for name in extension.map_or_else(Vec::new, |(_, names)| names.0) {
            match name {
                GeneralName::UniformResourceIdentifier(uri) => names.uris.push(text(&uri)),
                GeneralName::DnsName(dns) => names.dns.push(text(&dns)),
                _ => {}
            }
        }
        Ok(names)
    }
}

fn text(name: &Ia5String) -> String {
    name.as_str().to_owned()
}
