//! HTTP answers, as a Streamable HTTP server gives them.

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::streams::Place;
use crate::upstream::text::{Message, quoted};
use crate::upstream::{Answer, AnswerBody};

/// The header that names a legacy session.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header that says where a stream is resumed.
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The header that says which revision is spoken.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// What JSON-RPC calls a message that is not as it should be.
pub const INVALID_REQUEST: i64 = -32600;
/// What servers answer to a session that they do not know, or a request without one.
pub const NO_SESSION: i64 = -32000;
/// A server that is busy, or does not start.
pub const UNAVAILABLE: i64 = -32001;

/// A status and nothing else.
pub fn empty(status: StatusCode) -> Answer {
    Answer { status, headers: HeaderMap::new(), body: stream::empty().boxed() }
}

/// One message as JSON.
pub fn json(status: StatusCode, text: Bytes) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Answer { status, headers, body: stream::iter([Ok(text)]).boxed() }
}

/// An error of the transport. `id` as the request wrote it; without one it is null.
pub fn error(status: StatusCode, id: Option<&str>, code: i64, message: &str) -> Answer {
    let id = id.unwrap_or("null");
    let message = quoted(message);
    json(
        status,
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#).into(),
    )
}

/// A session that is not here, or not any more.
pub fn no_such_session(id: Option<&str>) -> Answer {
    error(StatusCode::NOT_FOUND, id, UNAVAILABLE, "there is no such session (any more)")
}

/// A method of HTTP that is not for this.
pub fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, None, NO_SESSION, "method not allowed");
    answer.headers.insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Too much is going on.
pub fn busy(id: Option<&str>, message: &str) -> Answer {
    let mut answer = error(StatusCode::SERVICE_UNAVAILABLE, id, UNAVAILABLE, message);
    answer.headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    answer
}

/// A stream of events.
pub fn events(body: AnswerBody) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Answer { status: StatusCode::OK, headers, body }
}

/// A message as an event; with its place where it can be resumed.
pub fn event(place: Option<Place>, text: &[u8]) -> Bytes {
    let id = place.map(|place| format!("id: {place}\n")).unwrap_or_default();
    [b"event: message\n", id.as_bytes(), b"data: ", text, b"\n\n"].concat().into()
}

/// The event without a message by which a client knows from the start where to resume (2025-11-25).
pub fn priming(place: Place) -> Bytes {
    format!("id: {place}\ndata: \n\n").into()
}

/// Something that is no event, to show that the stream lives.
pub const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// The status that a message of a modern server has if nothing was sent before it, as the revision says for the errors
/// of the protocol.
pub fn modern_status(message: &Message<'_>) -> StatusCode {
    match message.error_code() {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32700 | -32600 | -32602 | -32020 | -32021 | -32022) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
