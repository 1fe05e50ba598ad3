//! Reading of HTTP fields that may be repeated.
//!
//! A field with one value may be there once (RFC 9110, section 5.3): of two, the gateway could read one, and a client or a
//! server the other. A list may be spread over several fields.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName};

/// The value of a header that is there once, if it is visible ASCII text.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(only), None) => only.to_str().ok(),
        _ => None,
    }
}

/// Returns whether the header is repeated.
pub fn repeats(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}

/// Returns whether a field `Accept` names this media type.
pub fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut lists = headers.get_all(ACCEPT).iter().filter_map(|list| list.to_str().ok());
    lists.any(|list| list.contains(kind))
}
