//! What a client is told when it does not get what it asked for.
//!
//! The only place that knows status codes and wording. A [`Problem`] travels in the response's
//! extensions and is written out by `frame`, the last layer: as RFC 9290 concise problem details
//! on every path, or as RFC 9457 JSON where `/v1` was asked for JSON. Titles are SCRAPI's own where
//! one fits (draft -11, 2.3 and 2.4).
//!
//! Key -4 is left out: it is a CoAP code, not the HTTP status.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use scitt::problem::TABELLION;
use serde_json::json;
use uuid::Uuid;

use crate::limits::ECHO_BYTES;

/// A failed request, in the client's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// Short and the same each time.
    pub title: &'static str,
    /// What happened this time.
    pub detail: Cow<'static, str>,
    /// Stable, one word per cause; see `tabellion help errors`.
    pub code: &'static str,
    /// Where a malformed input stops making sense.
    pub offset: Option<u64>,
    /// The rule of the policy that refused.
    pub rule: Option<String>,
    /// Where in the statement that rule was broken.
    pub place: Option<String>,
    /// The entry that stands in the way: its ID.
    pub entry: Option<String>,
    /// Seconds after which it is worth trying again.
    pub retry_after: Option<u64>,
    /// Methods that the resource has, for 405.
    pub allow: Option<&'static str>,
}

impl Problem {
    /// A problem with nothing more to say than title and detail.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            title,
            detail: detail.into(),
            code,
            offset: None,
            rule: None,
            place: None,
            entry: None,
            retry_after: None,
            allow: None,
        }
    }

    /// 400 `Malformed request`.
    pub fn malformed(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, "Malformed request", detail)
    }

    /// 400 `Rejected`: well-formed, and not accepted.
    pub fn rejected(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, "Rejected", detail)
    }

    /// 400 `Invalid locator`.
    pub fn invalid_locator() -> Self {
        let detail = "Operation locator is not in a valid form: an entry ID is 64 lowercase hex digits";
        Self::new(StatusCode::BAD_REQUEST, "locator-invalid", "Invalid locator", detail)
    }

    /// 404 `Not Found` for an entry ID.
    pub fn unknown_entry(id: &str) -> Self {
        let detail =
            format!("Receipt with entry ID {} not known to this Transparency Service", shortened(id));
        Self::new(StatusCode::NOT_FOUND, "entry-unknown", "Not Found", detail)
    }

    /// 503 with `Retry-After`.
    pub fn busy(code: &'static str, detail: impl Into<Cow<'static, str>>, retry_after: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, "Service Unavailable", detail)
            .retry_after(retry_after)
    }

    /// 500. The cause is for the operator's log; the client gets the request's number.
    pub fn internal() -> Self {
        let detail = "The service failed; the operator finds the cause in the log under this instance";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal Server Error", detail)
    }

    /// What the framework itself refused, in our shape.
    pub fn of_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("route-unknown", "There is nothing at this address"),
            StatusCode::METHOD_NOT_ALLOWED => ("method", "This resource does not have that method"),
            StatusCode::PAYLOAD_TOO_LARGE => ("body-too-large", "The request body is too large"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ("media-type", "The content type is not accepted here"),
            _ if status.is_client_error() => ("request", "The request cannot be served"),
            _ => return Self { status, ..Self::internal() },
        };
        let title = match status {
            StatusCode::BAD_REQUEST => "Malformed request",
            _ => status.canonical_reason().unwrap_or("Request Failed"),
        };
        Self::new(status, code, title, detail)
    }

    /// Names the byte where the input stops making sense.
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Names the rule that refused.
    pub fn by_rule(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// Names the place in the statement.
    pub fn at_place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Names the entry that stands in the way.
    pub fn about_entry(mut self, id: impl Into<String>) -> Self {
        self.entry = Some(id.into());
        self
    }

    /// Says when to come back.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds.max(1));
        self
    }

    /// Says which methods there are.
    pub fn allow(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }
}

/// The two ways a problem is written.
impl Problem {
    /// RFC 9290 concise problem details.
    pub fn to_cbor(&self, instance: Uuid) -> Vec<u8> {
        let mut problem = scitt::Problem::new(self.title, &*self.detail)
            .instance(instance.urn().to_string())
            .code(self.code);
        for (name, text) in [("rule", &self.rule), ("entry", &self.entry), ("place", &self.place)] {
            if let Some(text) = text {
                problem = problem.entry(TABELLION, name, text.clone());
            }
        }
        if let Some(offset) = self.offset {
            problem = problem.entry(TABELLION, "offset", offset);
        }
        problem.encode()
    }

    /// RFC 9457.
    pub fn to_json(&self, instance: Uuid) -> Vec<u8> {
        let mut body = json!({
            "type": "about:blank",
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "instance": instance.urn().to_string(),
            "code": self.code,
        });
        let optional = [("rule", &self.rule), ("entry", &self.entry), ("place", &self.place)];
        for (name, text) in optional {
            if let Some(text) = text {
                body[name] = json!(text);
            }
        }
        if let Some(offset) = self.offset {
            body["offset"] = json!(offset);
        }
        body.to_string().into_bytes()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(Box::new(self));
        response
    }
}

/// Foreign text as an error may quote it: escaped, and never more than [`ECHO_BYTES`].
pub fn shortened(text: &str) -> String {
    let mut short = String::new();
    for c in text.chars() {
        let piece =
            if c.is_ascii_graphic() || c == ' ' { c.to_string() } else { c.escape_unicode().to_string() };
        if short.len() + piece.len() > ECHO_BYTES - '…'.len_utf8() {
            short.push('…');
            break;
        }
        short.push_str(&piece);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_never_quotes_more_than_64_bytes_and_nothing_unprintable() {
        let hostile = "\u{1b}[31m\u{202e}".repeat(100);
        let quoted = shortened(&hostile);
        assert!(quoted.len() <= ECHO_BYTES);
        assert!(quoted.chars().all(|c| c.is_ascii_graphic() || c == '…'));
        assert_eq!(shortened("abc"), "abc");
    }
}
