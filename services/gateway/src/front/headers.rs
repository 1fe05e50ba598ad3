//! Headers on their way: what is between two neighbours only stays there.

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, ORIGIN, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

pub use crate::upstream::request::{LAST_EVENT, METHOD, SESSION, VERSION};

/// Where an AgentROA envelope may be instead of in `_meta`.
pub const ROA: HeaderName = HeaderName::from_static("agentroa");

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// What concerns two neighbours only (RFC 9110, section 7.6.1).
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

/// What goes to the upstream of a request's headers, with the credential that it gets.
pub fn to_upstream(client: &HeaderMap, authorization: Option<HeaderValue>) -> HeaderMap {
    let mut headers = end_to_end(client.clone());
    // Who we are to the upstream is our business, and so is whether answers are compressed: they must not be.
    for ours in [HOST, CONTENT_LENGTH, EXPECT, ORIGIN, AUTHORIZATION, ACCEPT_ENCODING, ROA] {
        headers.remove(ours);
    }
    headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
    headers
}

/// The headers without those that concern two neighbours only.
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

/// A `Connection: mcp-session-id` would take from a message what it is decided by.
fn is_the_protocols(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-") || *name == LAST_EVENT || *name == http::header::CONTENT_TYPE
}

/// A header that is there once, in letters.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether it is there more than once: two readers could take different ones.
pub fn repeats(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}
