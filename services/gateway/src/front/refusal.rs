//! Error responses of the gateway itself, where neither the upstream nor a Verdict answers.

use std::time::Duration;

use axum::response::IntoResponse;
use http::header::{ACCEPT_ENCODING, ALLOW, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::frame::{FrameError, RawId, error_code, reply};
use crate::relay;
use crate::relay::{Response, UPSTREAM_FAILED};
use crate::upstream::UpstreamError;

/// Reason why the front end refuses a request.
#[derive(Debug)]
pub enum RequestRefusal {
    /// The address has reached its rate limit; the time to wait (V-11).
    TooMany(Duration),
    /// `Host` is not one of the gateway's names.
    Host,
    /// `Origin` is a page that may not call the gateway.
    Origin,
    /// The HTTP method is not one of the endpoint's, which are listed here.
    Method(&'static str),
    /// The body is not declared as JSON in UTF-8.
    Media(&'static str),
    /// The body has a content coding.
    ContentCoding,
    /// The body is longer than this limit, in bytes.
    TooLong(usize),
    /// The memory budget for messages is used up.
    NoRoom,
    /// The body did not arrive in time.
    TooSlow,
    /// The body broke off.
    Broken,
    /// The body is not a message that can be decided on.
    Message(FrameError),
    /// The header `Client-Cert` of a trusted proxy is not a certificate.
    Certificate,
    /// The header with this name is repeated.
    RepeatedHeader(HeaderName),
}

impl IntoResponse for RequestRefusal {
    fn into_response(self) -> Response {
        let invalid = |status, words: &str| relay::error(status, error_code::INVALID_REQUEST, words);
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
            Self::Method(allowed) => {
                let words = format!("the methods of this address are {allowed}");
                let mut response = invalid(StatusCode::METHOD_NOT_ALLOWED, &words);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
                response
            }
            Self::Media(words) => invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, words),
            // Only here, so that a client can tell the two 415 apart (RFC 9110, section 15.5.16).
            Self::ContentCoding => {
                let words =
                    "messages with a content coding are not accepted: send it without Content-Encoding";
                let mut response = invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, words);
                response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
                response
            }
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
            Self::Message(why) => {
                let message = reply::error(why.id(), why.code(), &why.to_string(), None);
                relay::json(StatusCode::BAD_REQUEST, message)
            }
            Self::Certificate => {
                invalid(StatusCode::BAD_REQUEST, "the header Client-Cert is not a certificate (RFC 9440)")
            }
            Self::RepeatedHeader(name) => {
                invalid(StatusCode::BAD_REQUEST, &format!("the header {name} is there twice"))
            }
        }
    }
}

/// The response if the upstream did not answer: a JSON-RPC error with status 200 for a request with an id,
/// otherwise an HTTP error status.
pub fn unanswered(id: Option<&RawId>, error: &UpstreamError) -> Response {
    // The client receives a general text, with at most the name of the server; the details are logged for the operator.
    tracing::warn!(%error, "a request was not answered");
    let words = &relay::failure_text(error);
    match (id, error) {
        (Some(id), _) => relay::json(StatusCode::OK, relay::lost_answer(Some(id), words)),
        (None, UpstreamError::TimedOut | UpstreamError::Overdue { .. }) => {
            relay::error(StatusCode::GATEWAY_TIMEOUT, UPSTREAM_FAILED, words)
        }
        (None, _) => relay::error(StatusCode::BAD_GATEWAY, UPSTREAM_FAILED, words),
    }
}
