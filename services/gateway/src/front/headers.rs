//! The request headers: those that may be there once, and those that are forwarded to an upstream.

use data_encoding::BASE64URL_NOPAD;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::refusal::RequestRefusal;
use crate::upstream::fields::repeats;
use crate::upstream::headers::end_to_end;

/// The header that may carry an AgentROA envelope instead of `_meta`.
pub const ROA: HeaderName = HeaderName::from_static("agentroa");
/// The header that may carry the proof of possession instead of the message.
pub const ROA_PROOF: HeaderName = HeaderName::from_static("agentroa-proof");

/// The headers that every protocol reads, and that may be there once. `Host` and `Origin` are checked before them, and
/// `Authorization` with the token.
pub const SINGLE: [HeaderName; 4] = [CONTENT_TYPE, CONTENT_LENGTH, ROA, ROA_PROOF];

/// The request headers for the upstream, with the credential that it receives.
pub fn to_upstream(client: &HeaderMap, authorization: Option<HeaderValue>) -> HeaderMap {
    let mut headers = end_to_end(client.clone());
    // The gateway sets its own identity towards the upstream, and answers must not be compressed.
    for ours in [HOST, CONTENT_LENGTH, EXPECT, ORIGIN, AUTHORIZATION, ACCEPT_ENCODING, ROA, ROA_PROOF] {
        headers.remove(ours);
    }
    headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
    headers
}

/// Returns the chain in the header [`ROA`] as JSON text; an error if the header is not base64url.
pub fn header_chain(headers: &HeaderMap) -> Option<Result<String, ()>> {
    let decoded = |value: &HeaderValue| {
        let bytes = BASE64URL_NOPAD.decode(value.as_bytes()).map_err(drop)?;
        String::from_utf8(bytes).map_err(drop)
    };
    headers.get(ROA).map(decoded)
}

/// Returns the proof of possession in the header [`ROA_PROOF`]. A value that is not text is malformed, and not absent.
pub fn header_proof(headers: &HeaderMap) -> Option<String> {
    headers.get(ROA_PROOF).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Checks that none of the headers that may be there once is repeated: two readers could take different values.
///
/// # Errors
/// [`RequestRefusal::RepeatedHeader`] if one is.
pub fn refuse_repeated(headers: &HeaderMap, single: &[HeaderName]) -> Result<(), RequestRefusal> {
    match single.iter().find(|name| repeats(headers, name)) {
        Some(name) => Err(RequestRefusal::RepeatedHeader(name.clone())),
        None => Ok(()),
    }
}
