//! The client certificate that a trusted proxy hands over in the header `Client-Cert` (RFC 9440, section 2.2).
//!
//! TLS is terminated before the gateway, so the header is only worth as much as its sender: it is taken out of every
//! request, and read only if the connection is a trusted proxy's. The proxy must remove the header of its own clients.

use data_encoding::BASE64;
use http::{HeaderMap, HeaderName, HeaderValue};
use roa::text::Sha256Digest;

use super::refusal::RequestRefusal;
use crate::upstream::fields::repeats;

/// The header with the certificate, as a structured field (a byte sequence).
const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");
/// The header with the certificates of its issuers, which the proxy has verified.
const CLIENT_CERT_CHAIN: HeaderName = HeaderName::from_static("client-cert-chain");

/// Removes the headers of a client certificate, and returns the thumbprint of the certificate (`sha256:` and the digest of
/// its DER) if a trusted proxy sent one.
///
/// # Errors
/// [`RequestRefusal`] if the header of a trusted proxy is repeated, or not a byte sequence.
pub fn take(headers: &mut HeaderMap, is_trusted: bool) -> Result<Option<String>, RequestRefusal> {
    let is_repeated = repeats(headers, &CLIENT_CERT);
    let certificate = headers.remove(CLIENT_CERT).filter(|_| is_trusted);
    headers.remove(CLIENT_CERT_CHAIN);
    match certificate {
        Some(_) if is_repeated => Err(RequestRefusal::RepeatedHeader(CLIENT_CERT)),
        Some(value) => thumbprint(&value).map(Some).ok_or(RequestRefusal::Certificate),
        None => Ok(None),
    }
}

fn thumbprint(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim().strip_prefix(':')?.strip_suffix(':')?;
    let der = BASE64.decode(text.as_bytes()).ok().filter(|der| !der.is_empty())?;
    Some(Sha256Digest::of(&der).to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn taken(values: &[&str], is_trusted: bool) -> Result<Option<String>, RequestRefusal> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CLIENT_CERT, value.parse().unwrap());
            headers.append(CLIENT_CERT_CHAIN, value.parse().unwrap());
        }
        let taken = take(&mut headers, is_trusted);
        assert!(headers.is_empty());
        taken
    }

    #[test]
    fn a_trusted_proxy_names_one_certificate() {
        let thumbprint = Some(Sha256Digest::of(b"der").to_string());
        assert_eq!(taken(&[":ZGVy:"], true).unwrap(), thumbprint);
        assert_eq!(taken(&[], true).unwrap(), None);
        for malformed in ["ZGVy", ":ZGVy", ":ZGV:", "::", ":", ":ZGVy:;a=1"] {
            assert!(matches!(taken(&[malformed], true), Err(RequestRefusal::Certificate)), "{malformed}");
        }
        assert!(matches!(taken(&[":ZGVy:", ":ZGVy:"], true), Err(RequestRefusal::RepeatedHeader(_))));
    }

    #[test]
    fn the_header_of_another_sender_is_removed_unread() {
        for values in [&[":ZGVy:"][..], &["malformed"], &[":ZGVy:", ":ZGVy:"]] {
            assert_eq!(taken(values, false).unwrap(), None);
        }
    }
}
