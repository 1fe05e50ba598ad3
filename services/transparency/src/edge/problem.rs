//! Problem details: the error responses of the service.
//!
//! A [`Problem`] travels in the response's extensions and is serialized by `frame`, the outermost middleware, in the form
//! that `negotiation` chooses: RFC 9290 concise problem details, or RFC 9457 JSON, whose `type` is the address of the
//! code's documentation. Titles are SCRAPI's own where one fits (draft -11, 2.3 and 2.4).
//!
//! Key -4 is left out: it is a CoAP code, not the HTTP status.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use scitt::problem::TABELLION;
use serde_json::json;
use serving::problem::ErrorDocumentation;
use uuid::Uuid;

use crate::limits::ECHO_BYTES;

/// The code of a request body with a content coding.
pub const CONTENT_CODING: &str = "content-coding";

/// A failed request, described for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// Short title, constant for a kind of problem.
    pub title: &'static str,
    /// Description of this occurrence.
    pub detail: Cow<'static, str>,
    /// Stable identifier of the cause; see `tabellion help errors`.
    pub code: &'static str,
    /// Seconds until a retry is worthwhile (`Retry-After`).
    pub retry_after: Option<u64>,
    /// Members that only some problems have.
    more: Option<Box<DefectLocations>>,
}

/// Locations of the defect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DefectLocations {
    /// Offset of the byte at which a malformed input is invalid.
    offset: Option<u64>,
    /// The rule of the policy that refused.
    rule: Option<String>,
    /// The location in the statement that violates the rule.
    place: Option<String>,
    /// ID of the conflicting entry.
    entry: Option<String>,
}

impl Problem {
    /// Creates a problem without optional members.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, title, detail: detail.into(), code, retry_after: None, more: None }
    }

    /// 400 `Malformed request`.
    pub fn malformed(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, "Malformed request", detail)
    }

    /// 400 `Rejected`: the request is well-formed, and the statement is not accepted.
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

    /// 500. The cause is only logged; the client gets the request's number.
    pub fn internal() -> Self {
        let detail = "The service failed; the operator finds the cause in the log under this instance";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal Server Error", detail)
    }

    /// The problem for a status that the framework itself returned without a body.
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

    /// Adds the offset at which the input is invalid.
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.more().offset = Some(offset);
        self
    }

    /// Adds the rule that refused.
    pub fn by_rule(mut self, rule: impl Into<String>) -> Self {
        self.more().rule = Some(rule.into());
        self
    }

    /// Adds the location in the statement.
    pub fn at_place(mut self, place: impl Into<String>) -> Self {
        self.more().place = Some(place.into());
        self
    }

    /// Adds the ID of the conflicting entry.
    pub fn about_entry(mut self, id: impl Into<String>) -> Self {
        self.more().entry = Some(id.into());
        self
    }

    fn more(&mut self) -> &mut DefectLocations {
        self.more.get_or_insert_default()
    }

    /// The optional members with a text, by name.
    fn texts(&self) -> impl Iterator<Item = (&'static str, &String)> {
        self.more.iter().flat_map(|more| {
            let texts = [("rule", &more.rule), ("entry", &more.entry), ("place", &more.place)];
            texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)))
        })
    }

    fn offset(&self) -> Option<u64> {
        self.more.as_ref().and_then(|more| more.offset)
    }

    /// Adds `Retry-After`, at least 1 second.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds.max(1));
        self
    }
}

/// Serialization.
impl Problem {
    /// Serializes the problem as RFC 9290 concise problem details.
    pub fn to_cbor(&self, instance: Uuid) -> Vec<u8> {
        let mut problem = scitt::Problem::new(self.title, &*self.detail)
            .instance(instance.urn().to_string())
            .code(self.code);
        for (name, text) in self.texts() {
            problem = problem.entry(TABELLION, name, text.clone());
        }
        if let Some(offset) = self.offset() {
            problem = problem.entry(TABELLION, "offset", offset);
        }
        problem.encode()
    }

    /// Serializes the problem as RFC 9457 JSON.
    pub fn to_json(&self, instance: Uuid, documentation: &ErrorDocumentation) -> Vec<u8> {
        let mut body = self.members(documentation);
        body["instance"] = json!(instance.urn().to_string());
        body.to_string().into_bytes()
    }

    /// Renders the problem as a page of a service that browsers reach at this path, without a slash at its end.
    pub fn to_page(&self, instance: Uuid, path: &str) -> Vec<u8> {
        let page = explorer::ProblemPage {
            status: self.status.as_u16(),
            title: self.title.to_owned(),
            detail: self.detail.clone().into_owned(),
            code: self.code.to_owned(),
            request: instance.to_string(),
        };
        page.html(path).into_bytes()
    }

    /// The members of the JSON form that do not depend on the request, so without `instance`.
    pub fn members(&self, documentation: &ErrorDocumentation) -> serde_json::Value {
        let mut body = json!({
            "type": documentation.of(self.code),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        });
        for (name, text) in self.texts() {
            body[name] = json!(text);
        }
        if let Some(offset) = self.offset() {
            body["offset"] = json!(offset);
        }
        body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(Box::new(self));
        response
    }
}

/// Quotes foreign text for an error: escaped, and never longer than [`ECHO_BYTES`].
pub fn shortened(text: &str) -> String {
    shortened_to(text, ECHO_BYTES)
}

/// Quotes foreign text like [`shortened`], in at most `bytes` bytes.
pub fn shortened_to(text: &str, bytes: usize) -> String {
    let mut short = String::new();
    // Length of the beginning after which there is room for the ellipsis.
    let mut cut = 0;
    for c in text.chars() {
        let piece =
            if c.is_ascii_graphic() || c == ' ' { c.to_string() } else { c.escape_unicode().to_string() };
        if short.len() + piece.len() > bytes {
            short.truncate(cut);
            short.push('…');
            break;
        }
        short.push_str(&piece);
        if short.len() + '…'.len_utf8() <= bytes {
            cut = short.len();
        }
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

    #[test]
    fn an_entry_id_is_quoted_whole_and_a_longer_text_is_cut() {
        let id = "0".repeat(ECHO_BYTES);
        assert_eq!(shortened(&id), id);
        let longer = shortened(&format!("{id}1"));
        assert_eq!(longer, format!("{}…", "0".repeat(61)));
        assert_eq!(longer.len(), ECHO_BYTES);
    }
}
