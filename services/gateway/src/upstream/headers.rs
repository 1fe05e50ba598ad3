//! End-to-end headers: all but the hop-by-hop ones, which are not forwarded.

use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName};

use super::request::{LAST_EVENT, SESSION};

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

/// The headers of an answer that may be there once.
const SINGLE: [HeaderName; 4] = [CONTENT_TYPE, CONTENT_LENGTH, LOCATION, SESSION];

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

/// The headers of an upstream's answer that are passed on: those that only the gateway writes are not. Of a header that may
/// be there once, equal repetitions are removed.
///
/// # Errors
/// The name of such a header that is there twice with different values.
pub fn from_upstream(headers: HeaderMap) -> Result<HeaderMap, HeaderName> {
    let mut headers = end_to_end(headers);
    headers.remove(RECEIPT);
    for name in SINGLE {
        let Some(first) = headers.get(&name).cloned() else { continue };
        if headers.get_all(&name).iter().any(|value| *value != first) {
            return Err(name);
        }
        headers.insert(name, first);
    }
    Ok(headers)
}

/// Returns whether the MCP protocol needs the header. Such a header is kept even if `Connection` lists it: without
/// `Mcp-Session-Id`, for example, the upstream would see another message than the one that was decided on.
fn is_the_protocols(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-") || *name == LAST_EVENT || *name == CONTENT_TYPE
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn answer(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_header_that_may_be_there_once_has_one_value() {
        for name in SINGLE {
            let passed = from_upstream(answer(&name, &["1", "1"])).unwrap();
            assert_eq!(passed, answer(&name, &["1"]), "{name}");
            assert_eq!(from_upstream(answer(&name, &["1", "2"])), Err(name));
        }
        let list = HeaderName::from_static("www-authenticate");
        assert_eq!(from_upstream(answer(&list, &["1", "2"])), Ok(answer(&list, &["1", "2"])));
    }
}
