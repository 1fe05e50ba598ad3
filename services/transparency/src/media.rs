//! Media types: which a client sends, which it would rather read.

use http::header::{ACCEPT, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName};

use crate::multipart::Value;

/// A COSE object, SCRAPI's default on the wire.
pub const COSE: &str = "application/cose";
/// RFC 9943's type for a Signed Statement.
pub const STATEMENT: &str = "application/scitt-statement+cose";
/// RFC 9943's type for a Receipt.
pub const RECEIPT: &str = "application/scitt-receipt+cose";
/// Statement and payload, each as a part (RFC 7578).
pub const FORM: &str = "multipart/form-data";
/// A batch.
pub const MIXED: &str = "multipart/mixed";
/// What clients call a file whose type they do not know.
const UNKNOWN: &str = "application/octet-stream";
/// CBOR.
pub const CBOR: &str = "application/cbor";
/// JSON.
pub const JSON: &str = "application/json";
/// A JWK Set (RFC 7517, section 8.5.2).
pub const JWK_SET: &str = "application/jwk-set+json";
/// RFC 9290.
pub const CONCISE_PROBLEM: &str = "application/concise-problem-details+cbor";
/// RFC 9457.
pub const JSON_PROBLEM: &str = "application/problem+json";

/// What an answer says whose form the client chose: caches keep each form by itself.
pub const NEGOTIATED: (HeaderName, &str) = (VARY, "accept");

/// Whether `POST /entries` takes a body of this type.
///
/// A missing type is taken, and plain CBOR too: older peers send them, and the body says what it is.
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

/// The media type of a body without its parameters, in lower case; none unless it is given once.
pub fn essence(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    Some(split(value.to_str().ok()?).0)
}

/// Whether a part of a batch is of a type that statements come in.
pub fn is_statement_in_batch(part: &Value) -> bool {
    match part.essence.as_str() {
        COSE => part.parameters().all(|(name, value)| name != "cose-type" || value == "cose-sign1"),
        STATEMENT => true,
        _ => false,
    }
}

/// The same for a part of a form, where clients that send files name no better type than bytes.
pub fn is_statement_in_form(part: &Value) -> bool {
    matches!(part.essence.as_str(), UNKNOWN | CBOR) || is_statement_in_batch(part)
}

/// Whether the client named this type, and likes it at least as much as any other it named.
pub fn prefers(headers: &HeaderMap, wanted: &str, over: &[&str]) -> bool {
    let quality = |media| named(headers, media);
    let Some(mine) = quality(wanted).filter(|quality| *quality > 0) else { return false };
    over.iter().filter_map(|other| quality(other)).all(|other| mine >= other)
}

/// The type by which an answer in COSE is labelled: the one that says more where the client prefers it to COSE.
pub fn cose_or(headers: &HeaderMap, named: &'static str) -> &'static str {
    if prefers(headers, named, &[COSE]) { named } else { COSE }
}

/// The quality (in thousandths) that `Accept` gives a type by name; wildcards do not count.
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
        assert!(!says("*/*"));
        assert!(!prefers(&HeaderMap::new(), RECEIPT, &over));
    }
}
