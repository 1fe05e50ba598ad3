//! End-to-end headers: all but the hop-by-hop ones, which are not forwarded.

use http::header::{
    CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName};

use super::request::LAST_EVENT;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// The header that refers to an execution receipt. Only the gateway writes it.
pub const RECEIPT: HeaderName = HeaderName::from_static("agentroa-receipt");

/// Hop-by-hop headers (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The headers without hop-by-hop ones, including those that `Connection` lists.
pub fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    let listed: Vec<HeaderName> = (headers.get_all(CONNECTION).iter())
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in listed.iter().filter(|name| !is_the_protocols(name)).chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers
}

/// The headers of an upstream's answer that are passed on: those that only the gateway writes are not.
pub fn from_upstream(headers: HeaderMap) -> HeaderMap {
    let mut headers = end_to_end(headers);
    headers.remove(RECEIPT);
    headers
}

/// Returns whether the MCP protocol needs the header. Such a header is kept even if `Connection` lists it: without
/// `Mcp-Session-Id`, for example, the upstream would see another message than the one that was decided on.
fn is_the_protocols(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-") || *name == LAST_EVENT || *name == http::header::CONTENT_TYPE
}
