//! HTTP answers, as a Streamable HTTP server gives them: what [`stdio`](super::stdio) and
//! [`federation`](super::federation) say themselves.

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::text::{Message, quoted};
use super::{Answer, AnswerBody};

/// What JSON-RPC calls a text that is no message.
pub const PARSE_ERROR: i64 = -32700;
/// What JSON-RPC calls a message that is not as it should be.
pub const INVALID_REQUEST: i64 = -32600;
/// What JSON-RPC calls a method that a server does not have.
pub const NO_METHOD: i64 = -32601;
/// What JSON-RPC calls parameters that do not do.
pub const INVALID_PARAMS: i64 = -32602;
/// What MCP calls a header that does not repeat what the body says.
pub const HEADER_MISMATCH: i64 = -32020;
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

/// A request of the legacy eras that names no session.
pub fn session_missing(id: Option<&str>) -> Answer {
    let why = "an Mcp-Session-Id is missing; initialize gives one";
    error(StatusCode::BAD_REQUEST, id, NO_SESSION, why)
}

/// A second `initialize` in a session.
pub fn initialized_already(id: Option<&str>) -> Answer {
    let why = "this session is initialized already; a new one is opened without Mcp-Session-Id";
    error(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, why)
}

/// `initialize` at a server that has no sessions.
pub fn no_sessions(id: Option<&str>) -> Answer {
    error(StatusCode::NOT_FOUND, id, NO_METHOD, "there is no initialize in this revision")
}

/// A response of a client to a server that has no requests.
pub fn no_responses() -> Answer {
    let why = "clients send no responses in this revision";
    error(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, why)
}

/// A body that is no message.
pub fn no_message() -> Answer {
    error(StatusCode::BAD_REQUEST, None, PARSE_ERROR, "the body is no JSON-RPC message")
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

/// A message as an event; with its id where it can be resumed.
pub fn event(id: Option<&str>, text: &[u8]) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    [b"event: message\n", id.as_bytes(), b"data: ", text, b"\n\n"].concat().into()
}

/// The event without a message by which a client knows from the start where to resume (2025-11-25).
pub fn priming(id: &str) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
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
