//! What a request over HTTP says besides its message: session, revision, place in a stream.

use data_encoding::BASE64URL_NOPAD;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, Method};

use super::text::{Kind, Message};
use super::{Exchange, UpstreamError};

/// The header that names a legacy session.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header that says where a stream is resumed.
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The header that says which revision is spoken.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header that repeats the method of a modern request.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The header that repeats what a modern request names.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The first revision without sessions. Revisions are dates: their order is that of their text.
const FIRST_MODERN: &str = "2026-07-28";

/// A header, if it is text.
pub fn header<'a>(request: &'a Exchange, name: &HeaderName) -> Option<&'a str> {
    request.headers.get(name)?.to_str().ok()
}

/// Whether the client takes a stream of events for an answer, as it should.
pub fn accepts_events(request: &Exchange) -> bool {
    header(request, &ACCEPT)
        .is_none_or(|accept| ["text/event-stream", "text/*", "*/*"].iter().any(|kind| accept.contains(kind)))
}

/// Whether a message is of the era without sessions: it says so itself, or its headers do.
pub fn is_modern(request: &Exchange, message: &Message<'_>) -> bool {
    message.is_modern() || (!is_initialize(message) && speaks_modern(&request.headers))
}

/// Whether the headers say that no sessions are known. The front decides by this too: whoever decides and whoever executes
/// must not see two eras. What is no date is no revision, and says nothing.
pub fn speaks_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|version| version.to_str().ok());
    version.is_some_and(|version| is_date(version) && version >= FIRST_MODERN)
}

fn is_date(text: &str) -> bool {
    let is_like = |(byte, like): (u8, u8)| if like == b'-' { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == FIRST_MODERN.len() && text.bytes().zip(FIRST_MODERN.bytes()).all(is_like)
}

/// Whether this is a GET or DELETE of the era that has none.
pub fn is_method_of_the_past(request: &Exchange) -> bool {
    request.method != Method::POST && speaks_modern(&request.headers)
}

/// Whether this asks for a session.
pub fn is_initialize(message: &Message<'_>) -> bool {
    message.kind == Kind::Request && message.method().as_deref() == Some("initialize")
}

/// A session's name that nobody guesses, in visible ASCII.
///
/// # Errors
/// If there is no randomness.
pub fn new_session_id() -> Result<String, UpstreamError> {
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(|error| UpstreamError::NeverSent(error.to_string()))?;
    Ok(BASE64URL_NOPAD.encode(&random))
}
