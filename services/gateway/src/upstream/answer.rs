//! HTTP answers in the form of a Streamable HTTP server, for the answers that [`stdio`](super::stdio) and
//! [`federation`](super::federation) make themselves, and for calls in a session that has ended.

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::text::{RpcMessage, quoted};
use super::{AnswerBody, UpstreamAnswer};
use crate::frame::error_code::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR,
    TRANSPORT_REFUSAL, UNAVAILABLE, UNSUPPORTED_REVISION,
};

/// An answer with a status and an empty body.
pub fn empty(status: StatusCode) -> UpstreamAnswer {
    UpstreamAnswer { status, headers: HeaderMap::new(), body: stream::empty().boxed(), is_unsent: false }
}

/// An answer with one JSON message as its body.
pub fn json(status: StatusCode, text: Bytes) -> UpstreamAnswer {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    UpstreamAnswer { status, headers, body: stream::iter([Ok(text)]).boxed(), is_unsent: false }
}

/// An answer with a JSON-RPC error, as [`error_message`] writes it.
pub fn error(status: StatusCode, id: Option<&str>, code: i32, message: &str) -> UpstreamAnswer {
    json(status, error_message(id, code, message))
}

/// A JSON-RPC error. `id` is the raw JSON of the request's id; without one, `null` is sent.
pub fn error_message(id: Option<&str>, code: i32, message: &str) -> Bytes {
    let id = id.unwrap_or("null");
    let message = quoted(message);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#).into()
}

/// Status 400: a request of the legacy eras without `Mcp-Session-Id`.
pub fn session_missing(id: Option<&str>) -> UpstreamAnswer {
    let why = "an Mcp-Session-Id is missing; initialize gives one";
    error(StatusCode::BAD_REQUEST, id, TRANSPORT_REFUSAL, why).unsent()
}

/// Status 400: a second `initialize` in a session.
pub fn initialized_already(id: Option<&str>) -> UpstreamAnswer {
    let why = "this session is initialized already; a new one is opened without Mcp-Session-Id";
    error(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, why).unsent()
}

/// Status 404: `initialize` at a server of the revision without sessions.
pub fn no_sessions(id: Option<&str>) -> UpstreamAnswer {
    error(StatusCode::NOT_FOUND, id, METHOD_NOT_FOUND, "there is no initialize in this revision").unsent()
}

/// Status 400: a client's response to a server that sends no requests.
pub fn no_responses() -> UpstreamAnswer {
    let why = "clients send no responses in this revision";
    error(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, why).unsent()
}

/// Status 400: a body that is not a JSON-RPC message.
pub fn no_message() -> UpstreamAnswer {
    error(StatusCode::BAD_REQUEST, None, PARSE_ERROR, "the body is not a JSON-RPC message").unsent()
}

/// Status 404: an unknown or ended session.
pub fn no_such_session(id: Option<&str>) -> UpstreamAnswer {
    error(StatusCode::NOT_FOUND, id, UNAVAILABLE, "there is no such session (any more)")
}

/// Status 400: a request of a session that names a revision which nobody has agreed on.
pub fn unknown_revision(id: Option<&str>) -> UpstreamAnswer {
    let why = "MCP-Protocol-Version names no revision of this session";
    error(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, why).unsent()
}

/// Status 405, with the `Allow` header.
pub fn not_allowed(allowed: &'static str) -> UpstreamAnswer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, None, TRANSPORT_REFUSAL, "method not allowed");
    answer.headers.insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Status 503 with `Retry-After`: a limit of the gateway is reached.
pub fn busy(id: Option<&str>, message: &str) -> UpstreamAnswer {
    let mut answer = error(StatusCode::SERVICE_UNAVAILABLE, id, UNAVAILABLE, message).unsent();
    answer.headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    answer
}

/// Status 200 with an event stream (`text/event-stream`) as its body.
pub fn events(body: AnswerBody) -> UpstreamAnswer {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    UpstreamAnswer { status: StatusCode::OK, headers, body, is_unsent: false }
}

/// A message as a server-sent event; `id` is given where the stream can be resumed.
pub fn event(id: Option<&str>, text: &[u8]) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    [b"event: message\n", id.as_bytes(), b"data: ", text, b"\n\n"].concat().into()
}

/// The priming event without a message: it gives the client an event id to resume from, right at the start (MCP
/// 2025-11-25).
pub fn priming(id: &str) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

/// A comment line as keep-alive of an event stream.
pub const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// The HTTP status for a modern server's message that is sent before any other output, as the MCP revision defines it
/// for the protocol's error codes.
pub fn modern_status(message: &RpcMessage<'_>) -> StatusCode {
    match message.error_code() {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | HEADER_MISMATCH | MISSING_CAPABILITY
            | UNSUPPORTED_REVISION,
        ) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
