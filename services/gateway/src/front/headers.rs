//! Forwarding of HTTP headers: hop-by-hop headers are removed.

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, ORIGIN, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

pub use crate::upstream::request::{LAST_EVENT, METHOD, SESSION, VERSION};

/// The header that may carry an AgentROA envelope instead of `_meta`.
pub const ROA: HeaderName = HeaderName::from_static("agentroa");

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

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

/// The request headers for the upstream, with the credential that it receives.
pub fn to_upstream(client: &HeaderMap, authorization: Option<HeaderValue>) -> HeaderMap {
    let mut headers = end_to_end(client.clone());
    // The gateway sets its own identity towards the upstream, and answers must not be compressed.
    for ours in [HOST, CONTENT_LENGTH, EXPECT, ORIGIN, AUTHORIZATION, ACCEPT_ENCODING, ROA] {
        headers.remove(ours);
    }
    headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
    headers
}

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

/// Returns whether the MCP protocol needs the header. Such a header is kept even if `Connection` lists it: without
/// `Mcp-Session-Id`, for example, the upstream would see another message than the one that was decided on.
fn is_the_protocols(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-") || *name == LAST_EVENT || *name == http::header::CONTENT_TYPE
}

/// The value of a header, if it is visible ASCII text.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns whether the header is repeated: two readers could then take different values.
pub fn repeats(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}
