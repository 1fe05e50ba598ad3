//! What the gateway answers itself, where neither the upstream nor a verdict does.

use std::time::Duration;

use axum::response::IntoResponse;
use http::header::{ALLOW, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};

use super::Response;
use crate::frame::{FrameError, RawId, reply};
use crate::relay;
use crate::upstream::UpstreamError;

/// The code of a JSON-RPC error: the upstream gave no answer.
pub const UPSTREAM_FAILED: i32 = -31001;
/// A header contradicts the body (2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;
/// Parameters lack what they must have.
const INVALID_PARAMS: i32 = -32602;

/// Why a request goes no further.
#[derive(Debug)]
pub enum Refusal {
    /// Too many from this address (V-11).
    TooMany(Duration),
    /// `Host` names somebody else.
    Host,
    /// `Origin` is a page that may not call us.
    Origin,
    /// Nothing but POST, GET and DELETE.
    Method,
    /// The body is not announced as JSON in UTF-8, or it is compressed.
    Media(&'static str),
    /// The body is too long.
    TooLong(usize),
    /// As many messages are held as can be.
    NoRoom,
    /// The body took too long.
    TooSlow,
    /// The body broke off.
    Broken,
    /// The body is no message that can be decided on.
    Message(FrameError),
    /// A header is there twice.
    RepeatedHeader(&'static str),
    /// A header contradicts the body.
    Mismatch(Option<RawId>, &'static str),
    /// The session is another's: to this client there is none.
    NoSession,
    /// A modern call does not say in its `_meta` which revision it speaks.
    WithoutRevision(Option<RawId>),
    /// `vap/amend` without an id could not be answered.
    AmendWithoutId,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let invalid = |status, words: &str| relay::error(status, -32600, words);
        match self {
            Self::TooMany(wait) => {
                let mut response =
                    invalid(StatusCode::TOO_MANY_REQUESTS, "too many requests from this address");
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                response.headers_mut().insert(RETRY_AFTER, seconds.max(1).into());
                response
            }
            Self::Host => invalid(StatusCode::FORBIDDEN, "this server is not asked for by that Host"),
            Self::Origin => invalid(StatusCode::FORBIDDEN, "pages of this Origin may not call this server"),
            Self::Method => {
                let mut response = invalid(StatusCode::METHOD_NOT_ALLOWED, "POST, GET or DELETE");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
                response
            }
            Self::Media(words) => invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, words),
            Self::TooLong(limit) => {
                let words = format!("the message is longer than {limit} bytes");
                invalid(StatusCode::PAYLOAD_TOO_LARGE, &words)
            }
            Self::NoRoom => {
                let words = "the gateway holds as many messages as it may";
                let mut response = invalid(StatusCode::SERVICE_UNAVAILABLE, words);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                response
            }
            Self::TooSlow => invalid(StatusCode::REQUEST_TIMEOUT, "the message took too long"),
            Self::Broken => invalid(StatusCode::BAD_REQUEST, "the message broke off"),
            Self::Message(why) => relay::error(StatusCode::BAD_REQUEST, why.code(), &why.to_string()),
            Self::RepeatedHeader(name) => {
                invalid(StatusCode::BAD_REQUEST, &format!("the header {name} is there twice"))
            }
            Self::Mismatch(id, name) => {
                let words = format!("the header {name} does not agree with the message");
                let message = reply::error(id.as_ref(), HEADER_MISMATCH, &words, None);
                relay::json(StatusCode::BAD_REQUEST, message)
            }
            Self::NoSession => {
                relay::error(StatusCode::NOT_FOUND, -32001, "there is no such session (any more)")
            }
            Self::WithoutRevision(id) => {
                let words = "params._meta lacks io.modelcontextprotocol/protocolVersion";
                relay::json(StatusCode::BAD_REQUEST, reply::error(id.as_ref(), INVALID_PARAMS, words, None))
            }
            Self::AmendWithoutId => invalid(StatusCode::BAD_REQUEST, "vap/amend needs an id"),
        }
    }
}

/// What a client hears whose request the upstream did not answer: a JSON-RPC error with status 200 if it can be matched to
/// a request, else a status.
pub fn unanswered(id: Option<&RawId>, error: &UpstreamError) -> Response {
    // The client is told no more than it may know: whoever runs the gateway reads the rest here.
    tracing::warn!(%error, "a request was not answered");
    let words = told(error);
    match (id, error) {
        (Some(id), _) => relay::json(StatusCode::OK, reply::error(Some(id), UPSTREAM_FAILED, words, None)),
        (None, UpstreamError::TimedOut) => relay::error(StatusCode::GATEWAY_TIMEOUT, UPSTREAM_FAILED, words),
        (None, _) => relay::error(StatusCode::BAD_GATEWAY, UPSTREAM_FAILED, words),
    }
}

/// Where an upstream is, and what our side of it looks like, is not for clients to know.
fn told(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::NeverSent(_) => "the upstream cannot be reached; the request had no effect",
        UpstreamError::Lost(_) => "the upstream's answer is lost; what came of the request is unknown",
        UpstreamError::TimedOut => "the upstream gave no answer in time; what came of the request is unknown",
    }
}

/// Whether only these methods are served: the others get [`Refusal::Method`].
pub fn is_served(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::GET | Method::DELETE)
}
