//! Problem details (RFC 9457): the error responses of the service.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER as RETRY_AFTER_HEADER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use serving::problem::documentation;
use utoipa::ToSchema;
use verification_store::StoreError;

use crate::jobs::{CHAIN_HALTED, ENGINE_UNAVAILABLE, INTERRUPTED, NotAccepted};
use crate::limits::RETRY_AFTER;
use crate::queue::NoPlace;

const JSON_PROBLEM: &str = "application/problem+json";

/// A failed request, described for the client (RFC 9457).
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: String,
    detail: String,
    pointer: Option<String>,
    retry_after: Option<u64>,
}

/// Problem details.
#[derive(Serialize, ToSchema)]
pub struct ProblemDetails {
    /// Address of the documentation of the code.
    r#type: String,
    /// The reason phrase of the status.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What happened, and what to do.
    detail: String,
    /// Stable identifier of the cause.
    code: String,
    /// JSON pointer into the request to the part that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

/// Returns whether a response has problem details.
pub fn is_problem(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value == JSON_PROBLEM)
}

impl Problem {
    /// Creates a problem without optional members.
    pub fn new(status: StatusCode, code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { status, code: code.into(), detail: detail.into(), pointer: None, retry_after: None }
    }

    /// 401 for a missing or unknown token.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "token", "a bearer token of this service is needed")
    }

    /// 403 for work of another agent than the client's own.
    pub fn subject() -> Self {
        let detail = "the token of this client is for the work of another agent: leave out subject, or name that agent";
        let problem = Self::new(StatusCode::FORBIDDEN, "subject", detail);
        Self { pointer: Some("/subject".into()), ..problem }
    }

    /// 422 for a part of the request that cannot be run.
    pub fn cannot_be_run(pointer: String, detail: String) -> Self {
        Self { pointer: Some(pointer), ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "request", detail) }
    }

    /// 429 until the quota admits another request.
    pub fn quota(wait: Duration) -> Self {
        let detail = "the quota of this client is used up";
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "quota", detail);
        Self { retry_after: Some(wait.as_secs() + 1), ..problem }
    }

    /// The problem of a job that has failed.
    pub fn of_failure(code: &str, reason: &str) -> Self {
        match code {
            ENGINE_UNAVAILABLE | INTERRUPTED => Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, reason),
            CHAIN_HALTED => Self::new(StatusCode::CONFLICT, code, reason),
            _ => Self::unavailable(code, reason),
        }
    }

    fn unavailable(code: &str, detail: &str) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail);
        Self { retry_after: Some(RETRY_AFTER.as_secs()), ..problem }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a request could not be served");
        // The text may name paths; it is in the service's own log.
        Self::unavailable("database", "the database does not answer")
    }
}

impl From<NotAccepted> for Problem {
    fn from(error: NotAccepted) -> Self {
        match error {
            NotAccepted::Store(error) => error.into(),
            NotAccepted::NoPlace(why @ NoPlace::Full(_)) => Self::unavailable("queue-full", &why.to_string()),
            NotAccepted::NoPlace(why @ NoPlace::Share(_)) => Self {
                retry_after: Some(RETRY_AFTER.as_secs()),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, "queue-share", why.to_string())
            },
            NotAccepted::NoPlace(why @ NoPlace::Unsigned(_)) => {
                Self::unavailable("unsigned-jobs", &why.to_string())
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let details = ProblemDetails {
            r#type: documentation(&self.code),
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code,
            pointer: self.pointer,
        };
        let mut response = (self.status, Json(details)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON_PROBLEM));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER_HEADER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
