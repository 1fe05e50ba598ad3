//! Problem details in JSON (RFC 9457): the error responses of the daemons, and the address of the documentation of their codes.
//!
//! A handler answers with a [`JsonProblem`], which travels in the extensions of the response. The listener writes its body, because
//! only the listener knows the request's number and where the operator has errors documented ([`ErrorDocumentation`]).
//!
//! Not here: problems of the log's public listener, which are CBOR too, and answers in plain text (the witness).

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use thiserror::Error;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::ToSchema;

use crate::network::http_address;
use crate::request_id::RequestId;

/// Content type of problem details in JSON.
pub const MEDIA_TYPE: &str = "application/problem+json";
/// Name of the setting with the address of the documentation of errors.
pub const SETTING: &str = "error_documentation";

/// The address below which the codes of problems are documented: the setting [`SETTING`]. A code follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDocumentation(Arc<str>);

/// A value of the setting [`SETTING`] that is not an address for documentation. Its text says what is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the address of a folder, like https://docs.example/errors/, without credentials and query")]
pub struct NoDocumentationAddress;

impl Default for ErrorDocumentation {
    fn default() -> Self {
        Self("https://tabellion.dev/errors/".into())
    }
}

impl ErrorDocumentation {
    /// Parses the value of the setting. A slash at the end may be left out.
    ///
    /// # Errors
    /// [`NoDocumentationAddress`] if it is not an HTTP URL, or has credentials, a query or a fragment.
    pub fn parse(text: &str) -> Result<Self, NoDocumentationAddress> {
        let url = http_address(text).ok_or(NoDocumentationAddress)?;
        Ok(Self(format!("{}/", url.as_str().trim_end_matches('/')).into()))
    }

    /// Returns the address of a code's documentation, the `type` of its problems.
    pub fn of(&self, code: &str) -> String {
        format!("{}{code}", self.0)
    }
}

/// A failed request, whose response has problem details in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonProblem {
    status: StatusCode,
    title: Option<Cow<'static, str>>,
    code: Cow<'static, str>,
    detail: Cow<'static, str>,
    pointer: Option<String>,
    retry_after: Option<u64>,
}

/// Why a request failed (RFC 9457).
#[derive(Serialize, ToSchema)]
pub struct ProblemDetails {
    /// Address of the documentation of the code.
    r#type: String,
    /// Short title, constant for a kind of problem.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What happened, and what to do.
    detail: String,
    /// The request's number as a URN; the daemon's log has it too.
    instance: String,
    /// Stable identifier of the cause: `tabellion help CODE` explains it.
    code: String,
    /// JSON pointer into the request to the part that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

impl JsonProblem {
    /// Creates a problem without optional members. Its title is the reason phrase of the status.
    pub fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (code, detail) = (code.into(), detail.into());
        Self { status, title: None, code, detail, pointer: None, retry_after: None }
    }

    /// 500. The cause is only logged; the client gets the request's number.
    pub fn internal() -> Self {
        let detail = "the service failed; the operator finds the cause in the log under this instance";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// Replaces the title.
    #[must_use]
    pub fn titled(self, title: impl Into<Cow<'static, str>>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Adds the JSON pointer to the part of the request that cannot be used.
    #[must_use]
    pub fn at(self, pointer: impl Into<String>) -> Self {
        Self { pointer: Some(pointer.into()), ..self }
    }

    /// Adds `Retry-After`, in seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The body of the problem of this request.
    fn details(self, id: RequestId, documentation: &ErrorDocumentation) -> ProblemDetails {
        let reason = self.status.canonical_reason().unwrap_or("Request Failed");
        ProblemDetails {
            r#type: documentation.of(&self.code),
            title: self.title.unwrap_or(Cow::Borrowed(reason)).into_owned(),
            status: self.status.as_u16(),
            detail: self.detail.into_owned(),
            instance: id.0.urn().to_string(),
            code: self.code.into_owned(),
            pointer: self.pointer,
        }
    }
}

impl IntoResponse for JsonProblem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Returns the response with the body of its [`JsonProblem`], if it has one.
pub(crate) fn written(mut response: Response, id: RequestId, documentation: &ErrorDocumentation) -> Response {
    let Some(problem) = response.extensions_mut().remove::<JsonProblem>() else { return response };
    // The length that the router has noted is that of the empty body.
    response.headers_mut().remove(CONTENT_LENGTH);
    let details = serde_json::to_vec(&problem.details(id, documentation)).unwrap_or_default();
    response.map(|_| Body::from(details))
}

/// Wraps routes so that every error has problem details: those of the router and of its extractors, and panics.
/// `resources` says for a 404 what there is.
pub fn for_every_error(routes: Router, resources: &'static str) -> Router {
    let complete = move |response: Response| std::future::ready(completed(response, resources));
    routes.layer(map_response(complete)).layer(CatchPanicLayer::custom(panicked))
}

/// Returns the response with problem details, if it is an error without.
fn completed(response: Response, resources: &'static str) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || is_problem(response.headers()) {
        return response;
    }
    let problem = match status {
        StatusCode::NOT_FOUND => JsonProblem::new(status, "not-found", resources),
        StatusCode::METHOD_NOT_ALLOWED => JsonProblem::new(status, "method", "see Allow"),
        StatusCode::PAYLOAD_TOO_LARGE => {
            JsonProblem::new(status, "body-too-large", "the request body is too large")
        }
        _ if status.is_client_error() => {
            JsonProblem::new(status, "request-malformed", "the request cannot be read")
        }
        _ => JsonProblem { status, ..JsonProblem::internal() },
    };
    let mut answer = problem.into_response();
    let allow = response.headers().get(ALLOW).cloned();
    answer.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
    answer
}

fn is_problem(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value == MEDIA_TYPE)
}

/// The answer to a request whose handler has panicked. The hook has printed the panic.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request ended in a panic");
    JsonProblem::internal().into_response()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_documentation_of_errors_is_an_address_to_which_codes_are_added() {
        let of = |text: &str| ErrorDocumentation::parse(text).map(|documentation| documentation.of("method"));
        assert_eq!(ErrorDocumentation::default().of("method"), "https://tabellion.dev/errors/method");
        assert_eq!(of("https://docs.example/errors/").unwrap(), "https://docs.example/errors/method");
        assert_eq!(of("http://docs.example/a/errors").unwrap(), "http://docs.example/a/errors/method");
        assert_eq!(of("https://docs.example").unwrap(), "https://docs.example/method");
        for other in
            ["docs.example", "file:///errors", "https://a@docs.example/", "https://docs.example/?code="]
        {
            assert_eq!(of(other), Err(NoDocumentationAddress), "{other}");
        }
    }
}
