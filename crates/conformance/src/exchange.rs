//! Requests and responses of the suite, independent of any HTTP client.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AsHeaderName, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::judgement::quoted;
use crate::limits::LONGEST_WAIT;

/// A request to the tested service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The method.
    pub method: Method,
    /// The absolute URL, on the origin of the tested service.
    pub url: Url,
    /// The value of `Accept`.
    pub accept: &'static str,
    /// The value of `Content-Type`; `None` for a request without it.
    pub content_type: Option<&'static str>,
    /// The body, which may be empty.
    pub body: Bytes,
    /// `true` to send the body in pieces with pauses.
    pub slow: bool,
}

/// A response of the tested service, with its complete body.
#[derive(Clone, Debug)]
pub struct ProbeResponse {
    /// The HTTP status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body, at most [`RESPONSE_BYTES`](crate::limits::RESPONSE_BYTES) long.
    pub body: Bytes,
}

impl ProbeResponse {
    /// Returns a header field as text, if it is present and visible ASCII.
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns `true` if the media type, without parameters, is `expected`.
    pub fn has_type(&self, expected: &str) -> bool {
        self.header(CONTENT_TYPE)
            .and_then(|value| value.split(';').next())
            .is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case(expected))
    }

    /// Returns `true` if a header field, whose value is a list, has this member. Case does not matter.
    pub fn lists(&self, name: HeaderName, member: &str) -> bool {
        let lines = self.headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|found| found.trim().eq_ignore_ascii_case(member))
    }

    /// Returns the content type for a conclusion, shortened.
    pub fn type_text(&self) -> String {
        self.header(CONTENT_TYPE).map_or_else(|| "no Content-Type".to_owned(), quoted)
    }

    /// Returns `true` if the registration is still running: 204, or 202, 302 and 303 of earlier drafts.
    pub fn is_not_yet(&self) -> bool {
        matches!(
            self.status,
            StatusCode::NO_CONTENT | StatusCode::ACCEPTED | StatusCode::FOUND | StatusCode::SEE_OTHER
        )
    }

    /// Returns `true` if the client sent too many requests (429).
    pub fn is_rate_limit(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS
    }

    /// Returns the wait that `Retry-After` asks for, at most [`LONGEST_WAIT`]. `None` without one in seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.header(RETRY_AFTER)?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
    }

    /// Returns `true` for 4xx and 5xx.
    pub fn is_error(&self) -> bool {
        self.status.is_client_error() || self.status.is_server_error()
    }
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub enum ProbeOutcome {
    /// The service answered.
    Answered(ProbeResponse),
    /// No response, with the reason: no connection, a timeout, a closed connection, or a body beyond the limit.
    Unanswered(String),
}
