//! Faults of a request head for which a request is refused before its service sees it: a `Host` that is missing, repeated or not
//! a host, and a transfer coding other than `chunked`.
//!
//! hyper reads a `Transfer-Encoding` that ends with `chunked` as if that were its only coding. The service would take the coded
//! bytes for the body, and a proxy that reads the field otherwise would see the end of the request at another byte.
//!
//! Not here: what hyper does itself. It answers 400, without problem details, to a last coding other than `chunked`, to
//! `Transfer-Encoding` in HTTP/1.0, and to a `Content-Length` that is malformed or repeated with another value. Of a request
//! with both fields it removes `Content-Length`, and it closes the connection after the response (RFC 9112, section 6.3). A
//! request of HTTP/2 with `Transfer-Encoding` ends with its stream.
//!
//! [`named_authority`] returns the host of a request without such a fault.

use http::header::{HOST, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, Version};

use crate::problem::JsonProblem;

/// A fault of a request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadFault {
    /// `Host` is missing in HTTP/1.1, repeated, or not a host.
    Host,
    /// The body has a transfer coding other than `chunked`.
    UnknownTransferCoding,
    /// `chunked` is not the only element of `Transfer-Encoding`: it is repeated, or beside an empty one.
    MalformedTransferEncoding,
}

impl HeadFault {
    /// Returns the fault of a request; `None` if it has none.
    pub fn of<B>(request: &Request<B>) -> Option<Self> {
        let host = || (!names_one_host(request)).then_some(Self::Host);
        Self::of_transfer_codings(request.headers()).or_else(host)
    }

    fn of_transfer_codings(headers: &HeaderMap) -> Option<Self> {
        let lists = headers.get_all(TRANSFER_ENCODING).iter();
        let codings = lists.flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
        let codings: Vec<&[u8]> = codings.map(<[u8]>::trim_ascii).collect();
        let is_other = |coding: &&[u8]| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"chunked");
        match &codings[..] {
            [] => None,
            codings if codings.iter().any(is_other) => Some(Self::UnknownTransferCoding),
            [coding] if !coding.is_empty() => None,
            _ => Some(Self::MalformedTransferEncoding),
        }
    }

    /// The status of the refusal (RFC 9112, sections 3.2 and 6.1).
    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::MalformedTransferEncoding => StatusCode::BAD_REQUEST,
            Self::UnknownTransferCoding => StatusCode::NOT_IMPLEMENTED,
        }
    }

    /// The code of the problem.
    pub fn code(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::UnknownTransferCoding | Self::MalformedTransferEncoding => "transfer-coding",
        }
    }

    /// The problem in words.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Host => {
                "An HTTP/1.1 request has exactly one Host header field, which names a host (RFC 9112, section 3.2)"
            }
            Self::UnknownTransferCoding => {
                "The only transfer coding that is implemented is chunked (RFC 9112, section 6.1)"
            }
            Self::MalformedTransferEncoding => {
                "The value of Transfer-Encoding is chunked, once (RFC 9112, section 6.1)"
            }
        }
    }

    /// Returns `true` if the end of the body is not known, so that no further request can be read from the connection.
    pub(crate) fn ends_connection(self) -> bool {
        matches!(self, Self::UnknownTransferCoding | Self::MalformedTransferEncoding)
    }

    /// The refusal in JSON.
    pub(crate) fn problem(self) -> JsonProblem {
        JsonProblem::new(self.status(), self.code(), self.detail())
    }
}

/// Returns the host that a request names, with its port: in `Host`, or without this field in the request target, as in HTTP/2.
/// `None` if it names none, or if `Host` is repeated or not a host.
pub fn named_authority(headers: &HeaderMap, target: &Uri) -> Option<Authority> {
    match host_field(headers).ok()? {
        Some(host) => authority_in(host),
        None => target.authority().cloned(),
    }
}

/// The `Host` field of a request is empty if its target has no authority (RFC 9110, section 7.2).
fn names_one_host<B>(request: &Request<B>) -> bool {
    match host_field(request.headers()) {
        Ok(Some(host)) => host.is_empty() || authority_in(host).is_some(),
        Ok(None) => request.version() != Version::HTTP_11,
        Err(_) => false,
    }
}

/// Returns the `Host` field, if there is one.
///
/// # Errors
/// [`HeadFault::Host`] if it is repeated.
fn host_field(headers: &HeaderMap) -> Result<Option<&HeaderValue>, HeadFault> {
    let mut fields = headers.get_all(HOST).iter();
    let first = fields.next();
    if fields.next().is_some() { Err(HeadFault::Host) } else { Ok(first) }
}

/// Returns the host, with or without a port, that is the value of a field.
fn authority_in(host: &HeaderValue) -> Option<Authority> {
    let authority = Authority::try_from(host.as_bytes()).ok()?;
    let after_host = authority.as_str().strip_prefix(authority.host())?;
    is_port_or_nothing(after_host).then_some(authority)
}

/// `Authority` takes any text for a port.
fn is_port_or_nothing(after_host: &str) -> bool {
    let port = after_host.strip_prefix(':');
    after_host.is_empty() || port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_chunked_alone_is_a_transfer_coding_that_is_read() {
        let (unknown, malformed) =
            (Some(HeadFault::UnknownTransferCoding), Some(HeadFault::MalformedTransferEncoding));
        for (lists, expected) in [
            (&[][..], None),
            (&["chunked"], None),
            (&[" Chunked "], None),
            (&["gzip"], unknown),
            (&["gzip, chunked"], unknown),
            (&["gzip", "chunked"], unknown),
            (&["identity, chunked"], unknown),
            (&["chunked;q=1"], unknown),
            (&["chunked, gzip, chunked"], unknown),
            (&["chunked, chunked"], malformed),
            (&["chunked", "chunked"], malformed),
            (&[", chunked"], malformed),
            (&["", "chunked"], malformed),
            (&[""], malformed),
        ] {
            let mut request = Request::builder().header(HOST, "x");
            for list in lists {
                request = request.header(TRANSFER_ENCODING, *list);
            }
            assert_eq!(HeadFault::of(&request.body(()).unwrap()), expected, "{lists:?}");
        }
    }

    #[test]
    fn a_request_of_http_2_needs_no_host_field_as_it_names_the_authority() {
        for (version, fault) in
            [(Version::HTTP_10, None), (Version::HTTP_11, Some(HeadFault::Host)), (Version::HTTP_2, None)]
        {
            let request = Request::builder().version(version).uri("http://x/").body(()).unwrap();
            assert_eq!(HeadFault::of(&request), fault, "{version:?}");
        }
    }

    #[test]
    fn a_request_names_its_host_in_the_field_or_without_one_in_its_target() {
        for (target, fields, named) in [
            ("/", &["x:80"][..], Some("x:80")),
            ("http://x/", &[], Some("x")),
            ("http://x/", &["y"], Some("y")),
            ("http://x/", &["x", "x"], None),
            ("http://x/", &["user@x"], None),
            ("http://x/", &[""], None),
            ("/", &[], None),
        ] {
            let mut request = Request::builder().uri(target);
            for field in fields {
                request = request.header(HOST, *field);
            }
            let request = request.body(()).unwrap();
            let found = named_authority(request.headers(), request.uri());
            assert_eq!(found.as_ref().map(Authority::as_str), named, "{target} {fields:?}");
        }
    }
}
