//! Media types: the types of request bodies, and the types that a client prefers in responses.

use http::header::{ACCEPT, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName};

pub use scitt::media::{CBOR, COSE, PROBLEM as CONCISE_PROBLEM, RECEIPT, STATEMENT};

use crate::edge::multipart::ParsedHeader;

/// The type of a form with a statement and a payload, each as a part (RFC 7578).
pub const FORM: &str = "multipart/form-data";
/// The type of a batch of statements.
pub const MIXED: &str = "multipart/mixed";
/// The type that clients give a file of unknown type.
const UNKNOWN: &str = "application/octet-stream";
/// The type of JSON.
pub const JSON: &str = "application/json";
/// The type of a page for people, without its parameter.
pub const HTML_ESSENCE: &str = "text/html";
/// The type of a page for people.
pub const HTML: &str = "text/html; charset=utf-8";
/// The type of a JWK Set (RFC 7517, section 8.5.2).
pub const JWK_SET: &str = "application/jwk-set+json";
/// The type of problem details in JSON (RFC 9457).
pub const JSON_PROBLEM: &str = serving::problem::MEDIA_TYPE;

/// The `Vary` header field of a response whose type the client chose: caches store each type separately.
pub const NEGOTIATED: (HeaderName, &str) = (VARY, "accept");

/// Returns `true` if `POST /entries` accepts a body of this type.
///
/// A missing type and plain CBOR are accepted too: older peers send them, and the body itself shows its type.
pub fn is_statement(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let Some(value) = values.next() else { return true };
    if values.next().is_some() {
        return false;
    }
    let Ok(value) = value.to_str() else { return false };
    let (essence, parameters) = split(value);
    match essence.as_str() {
        COSE => parameters.iter().all(|(name, value)| name != "cose-type" || value == "cose-sign1"),
        STATEMENT | CBOR => true,
        _ => false,
    }
}

/// The media type of a body without its parameters, in lower case; `None` unless there is exactly one `Content-Type`.
pub fn essence(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    Some(split(value.to_str().ok()?).0)
}

/// Returns `true` if a part of a batch has a statement's type.
pub fn is_statement_in_batch(part: &ParsedHeader) -> bool {
    match part.essence.as_str() {
        COSE => part.parameters().all(|(name, value)| name != "cose-type" || value == "cose-sign1"),
        STATEMENT => true,
        _ => false,
    }
}

/// Returns `true` if a part of a form has a statement's type, or one that clients give to any file.
pub fn is_statement_in_form(part: &ParsedHeader) -> bool {
    matches!(part.essence.as_str(), UNKNOWN | CBOR) || is_statement_in_batch(part)
}

/// Returns `true` if `Accept` names the type `wanted` with at least the quality of each type in `over`, which it may name
/// by a wildcard.
pub fn prefers(headers: &HeaderMap, wanted: &str, over: &[&str]) -> bool {
    let Some(wanted) = named(headers, wanted).filter(|quality| *quality > 0) else { return false };
    over.iter().filter_map(|other| quality_of(headers, other)).all(|other| wanted >= other)
}

/// Returns `true` if a client accepts a type, by its name or by a wildcard (RFC 9110, section 12.5.1). Without `Accept` it
/// accepts all types.
pub fn accepts(headers: &HeaderMap, media: &str) -> bool {
    !headers.contains_key(ACCEPT) || quality_of(headers, media).is_some_and(|quality| quality > 0)
}

/// The content type of a response in COSE: `named` where the client prefers it, else `application/cose`.
pub fn cose_or(headers: &HeaderMap, named: &'static str) -> &'static str {
    if prefers(headers, named, &[COSE]) { named } else { COSE }
}

/// The quality (in thousandths) that `Accept` gives a type, by its name or by a wildcard. The most specific name decides.
fn quality_of(headers: &HeaderMap, media: &str) -> Option<u16> {
    let range = media.split_once('/').map_or_else(String::new, |(kind, _)| format!("{kind}/*"));
    [media, &range, "*/*"].into_iter().find_map(|name| named(headers, name))
}

/// The quality (in thousandths) that `Accept` gives a type or a wildcard of this name.
fn named(headers: &HeaderMap, media: &str) -> Option<u16> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(split)
        .filter(|(essence, _)| essence == media)
        .map(quality)
        .max()
}

fn quality((_, parameters): (String, Vec<(String, String)>)) -> u16 {
    let q = parameters.iter().find(|(name, _)| name == "q").and_then(|(_, value)| value.parse::<f32>().ok());
    (q.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u16
}

fn split(value: &str) -> (String, Vec<(String, String)>) {
    let mut pieces = value.split(';').map(str::trim);
    let essence = pieces.next().unwrap_or_default().to_ascii_lowercase();
    let parameters = pieces.filter_map(|piece| piece.split_once('=')).map(|(name, value)| {
        (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"').to_ascii_lowercase())
    });
    (essence, parameters.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn statements_come_as_cose_with_or_without_its_parameter() {
        for taken in [
            "application/cose",
            "application/cose; cose-type=\"cose-sign1\"",
            "Application/COSE;cose-type=cose-sign1",
            "application/scitt-statement+cose",
            "application/cbor",
        ] {
            assert!(is_statement(&headers(CONTENT_TYPE, &[taken])), "{taken}");
        }
        assert!(is_statement(&HeaderMap::new()));
        for refused in ["application/json", "application/cose; cose-type=\"cose-mac0\"", "text/plain", ""] {
            assert!(!is_statement(&headers(CONTENT_TYPE, &[refused])), "{refused}");
        }
        assert!(!is_statement(&headers(CONTENT_TYPE, &[COSE, "text/html"])));
    }

    #[test]
    fn a_type_is_preferred_only_when_it_is_named() {
        let over = [COSE];
        let says = |value| prefers(&headers(ACCEPT, &[value]), RECEIPT, &over);
        assert!(says("application/scitt-receipt+cose"));
        assert!(says("application/cose, application/scitt-receipt+cose"));
        assert!(says("application/cose;q=0.5, application/scitt-receipt+cose;q=0.9"));
        assert!(!says("application/cose, application/scitt-receipt+cose;q=0.5"));
        assert!(!says("application/scitt-receipt+cose;q=0"));
        assert!(!says("*/*, application/scitt-receipt+cose;q=0.1"));
        assert!(!says("application/scitt-receipt+cose;q=0.1, application/*;q=0.5"));
        assert!(says("application/scitt-receipt+cose, */*;q=0.8"));
        assert!(says("application/*, application/cose;q=0.1, application/scitt-receipt+cose;q=0.2"));
        assert!(!says("*/*"));
        assert!(!prefers(&HeaderMap::new(), RECEIPT, &over));
    }
}
