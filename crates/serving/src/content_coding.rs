//! Content codings of request bodies (RFC 9110, section 8.4): the daemons accept none.

use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// Returns `true` if a body has a content coding other than `identity`.
pub fn is_coded(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
