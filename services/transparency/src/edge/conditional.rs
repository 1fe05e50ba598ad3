//! Conditional requests (RFC 9110, section 13): a client that has the current representation gets 304.
//!
//! Not here: ETags of resources that have a name for each of their states, which their routes make.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use merkle::EntryDigest;

/// The ETag of a representation, from its content.
pub fn tag_of(data: &[u8]) -> String {
    format!("\"{:.32}\"", EntryDigest::of(data).to_string())
}

/// A cacheable response with this ETag, quoted, and this `Cache-Control`; 304 if `If-None-Match` in the request's headers
/// names the ETag.
pub fn conditional_response(
    headers: &HeaderMap,
    etag: String,
    content_type: &'static str,
    cache_control: &'static str,
    data: Bytes,
) -> Response {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    // Weak comparison (RFC 9110, section 13.1.2): a proxy that compresses makes the tag a weak one.
    let is_tag = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
    let is_known = known.flat_map(|value| value.split(',')).any(|tag| is_tag(tag.trim()));
    let head = [(ETAG, etag), (CACHE_CONTROL, cache_control.to_owned())];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, head).into_response(),
        false => (head, [(CONTENT_TYPE, content_type)], data).into_response(),
    }
}
