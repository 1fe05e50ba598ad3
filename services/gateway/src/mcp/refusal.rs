//! Error responses to requests that the rules of MCP refuse.

use axum::response::IntoResponse;
use http::StatusCode;

use crate::frame::error_code::{HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, UNAVAILABLE};
use crate::frame::{RawId, reply};
use crate::front::RequestRefusal;
use crate::relay::{self, Response};

/// Reason why a request is refused before its handler sees it.
#[derive(Debug)]
pub enum McpRefusal {
    /// The rules of all protocols refuse the request.
    Request(RequestRefusal),
    /// The header with this name does not match the body.
    Mismatch(Option<RawId>, &'static str),
    /// The session belongs to another subject; the client sees an unknown session.
    NoSession,
    /// A modern call without the protocol revision in its `_meta`.
    WithoutRevision(Option<RawId>),
    /// A message without an id, of a method whose requests are decided, or answered by the gateway itself.
    WithoutId,
}

impl From<RequestRefusal> for McpRefusal {
    fn from(refusal: RequestRefusal) -> Self {
        Self::Request(refusal)
    }
}

impl IntoResponse for McpRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::Request(refusal) => refusal.into_response(),
            Self::Mismatch(id, name) => {
                let words = format!("the header {name} does not agree with the message");
                let message = reply::error(id.as_ref(), HEADER_MISMATCH, &words, None);
                relay::json(StatusCode::BAD_REQUEST, message)
            }
            Self::NoSession => {
                relay::error(StatusCode::NOT_FOUND, UNAVAILABLE, "there is no such session (any more)")
            }
            Self::WithoutRevision(id) => {
                let words = "params._meta lacks io.modelcontextprotocol/protocolVersion";
                relay::json(StatusCode::BAD_REQUEST, reply::error(id.as_ref(), INVALID_PARAMS, words, None))
            }
            Self::WithoutId => {
                let words = "this method needs an id: a message without one could not be answered";
                relay::error(StatusCode::BAD_REQUEST, INVALID_REQUEST, words)
            }
        }
    }
}
