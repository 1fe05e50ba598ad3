//! HTTP headers of an MCP request: session, revision, position in a stream.

use data_encoding::BASE64URL_NOPAD;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::fields::{accepts, text};
use super::text::{RpcKind, RpcMessage};
use super::{Exchange, UpstreamError};

/// The header that names a legacy session.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header with the id of the last received event, from which a stream is resumed.
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The header with the protocol revision.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header that repeats the method of a modern request.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The header that repeats the name or URI in a modern request.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The protocol revisions with sessions.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The first protocol revision without sessions. Revisions are dates, so their text order is their order.
const FIRST_MODERN: &str = "2026-07-28";

/// The value of a header that is there once, if it is visible ASCII text.
pub fn header<'a>(request: &'a Exchange, name: &HeaderName) -> Option<&'a str> {
    text(&request.headers, name)
}

/// Returns whether the client accepts an event stream, as the transport requires. True without an `Accept` header.
pub fn accepts_events(request: &Exchange) -> bool {
    let accepts_any =
        || ["text/event-stream", "text/*", "*/*"].iter().any(|kind| accepts(&request.headers, kind));
    !request.headers.contains_key(ACCEPT) || accepts_any()
}

/// Returns whether a message belongs to the modern era (without sessions), by its own members or by its headers.
pub fn is_modern(request: &Exchange, message: &RpcMessage<'_>) -> bool {
    message.is_modern() || (!is_initialize(message) && speaks_modern(&request.headers))
}

/// Returns whether the headers name a modern revision. The front end uses this function too, so that the decision and
/// the execution see the same era. A version that is not a date counts as no version.
pub fn speaks_modern(headers: &HeaderMap) -> bool {
    text(headers, &VERSION).is_some_and(|version| is_date(version) && version >= FIRST_MODERN)
}

/// Returns whether a request of a session names a revision in its header that has sessions, or the one that the session
/// `agreed` on. True without a header.
pub fn speaks_legacy(headers: &HeaderMap, agreed: Option<&str>) -> bool {
    let is_one = |version: &HeaderValue| LEGACY.into_iter().chain(agreed).any(|known| version == known);
    headers.get_all(VERSION).iter().all(is_one)
}

fn is_date(text: &str) -> bool {
    let is_like = |(byte, like): (u8, u8)| if like == b'-' { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == FIRST_MODERN.len() && text.bytes().zip(FIRST_MODERN.bytes()).all(is_like)
}

/// Returns the member of `params` that the header [`NAME`] repeats for a method; `None` if it repeats none.
pub fn mirrored_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

/// Returns whether this is a GET or DELETE in the modern era, which has neither.
pub fn is_method_of_the_past(request: &Exchange) -> bool {
    request.method != Method::POST && speaks_modern(&request.headers)
}

/// Returns whether this is an `initialize` request, which opens a session.
pub fn is_initialize(message: &RpcMessage<'_>) -> bool {
    message.kind == RpcKind::Request && message.method().as_deref() == Some("initialize")
}

/// Generates an unguessable session id (192 random bits) in visible ASCII.
///
/// # Errors
/// [`UpstreamError::NeverSent`] if the system gives no random bytes.
pub fn new_session_id() -> Result<String, UpstreamError> {
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(|error| UpstreamError::NeverSent(error.to_string()))?;
    Ok(BASE64URL_NOPAD.encode(&random))
}
