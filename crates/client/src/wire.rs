//! HTTP responses of bounded size, and their conversion to [`ClientError`].

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LINK, LOCATION};
use http::{HeaderMap, StatusCode};
use reqwest::{RequestBuilder, Response, Url};
use scitt::Problem;

use crate::ClientError;
use crate::retry;

/// Maximum size of a response: a statement and a payload at the hard limit, in base64, with their evidence.
pub const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// The value of `Accept` for a resource of any type.
pub const EVERY_TYPE: &str = "*/*";

/// Media type of problem details in JSON (RFC 9457).
const JSON_PROBLEM: &str = "application/problem+json";

/// A response with its complete body.
#[derive(Debug)]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: StatusCode,
    /// The response headers.
    pub headers: HeaderMap,
    /// The body, at most `MAX_ANSWER_BYTES` long.
    pub body: Bytes,
    /// The URL of the response.
    pub url: Url,
}

impl HttpResponse {
    /// Sends a request and reads the response; fails if its body is longer than `most` bytes.
    pub async fn to(request: RequestBuilder, accept: &'static str, most: usize) -> Result<Self, ClientError> {
        Self::within(request.header(ACCEPT, accept).send().await.map_err(unreachable)?, most).await
    }

    /// Reads the body of a response, up to `MAX_ANSWER_BYTES`.
    pub async fn of(response: Response) -> Result<Self, ClientError> {
        Self::within(response, MAX_ANSWER_BYTES).await
    }

    /// Reads the body of a response, up to `most` bytes.
    pub(crate) async fn within(response: Response, most: usize) -> Result<Self, ClientError> {
        let (status, headers, url) = (response.status(), response.headers().clone(), response.url().clone());
        let body = read_bounded(response, most).await?;
        Ok(Self { status, headers, body, url })
    }

    /// Returns the response if it is the resource that was requested with `accept`: with status 200, without a content
    /// coding, which no request of this client accepts, and no problem details, unless every type is accepted, as for a
    /// payload.
    ///
    /// # Errors
    /// [`ClientError::Nonsense`] with the URL if it is something else.
    pub(crate) fn into_resource(self, accept: &str) -> Result<Self, ClientError> {
        let refused = |why: String| Err(ClientError::Nonsense(format!("{}: {why}", self.url)));
        if self.status != StatusCode::OK {
            return refused(format!("the status is {}, and 200 is due", self.status));
        }
        if let Some(coding) = self.headers.get(CONTENT_ENCODING).filter(|coding| *coding != "identity") {
            return refused(format!("the answer is encoded ({coding:?}), and that was not asked for"));
        }
        match self.stated_problem().filter(|_| accept != EVERY_TYPE) {
            Some(problem) => refused(format!("problem details with status 200: {problem}")),
            None => Ok(self),
        }
    }

    /// The `Location` header as an absolute URL.
    pub fn location(&self) -> Option<Url> {
        self.url.join(self.headers.get(LOCATION)?.to_str().ok()?).ok()
    }

    /// The path below `/v1` of the next page (`Link` header with `rel="next"`, RFC 8288). The host in the link is
    /// ignored.
    pub fn next(&self) -> Option<String> {
        let link = self.headers.get(LINK)?.to_str().ok()?;
        let (target, relation) = link.strip_prefix('<')?.split_once('>')?;
        let (_, path) = target.split_once("/v1/").filter(|_| relation.contains("rel=\"next\""))?;
        Some(format!("v1/{path}"))
    }

    /// The wait that the service asks for (`Retry-After`).
    pub fn retry_after(&self) -> Option<Duration> {
        retry::retry_after(&self.headers)
    }

    /// Returns `true` if a retry may succeed (SCRAPI 5.1: 429, 503 and other server errors).
    pub fn is_transient(&self) -> bool {
        is_transient(self.status)
    }

    /// Converts a failed response to an error with its problem details, or with the status if there are none.
    pub fn into_error(self) -> ClientError {
        error_of(self.status, self.problem())
    }

    fn problem(&self) -> Box<Problem> {
        Box::new(self.stated_problem().unwrap_or_else(|| self.problem_of_status()))
    }

    /// The problem details in the body.
    fn stated_problem(&self) -> Option<Problem> {
        let kind = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match kind {
            kind if kind.starts_with(scitt::media::PROBLEM) => Problem::parse(&self.body).ok(),
            kind if kind.starts_with(JSON_PROBLEM) => {
                serde_json::from_slice(&self.body).ok().as_ref().and_then(problem_in_json)
            }
            _ => None,
        }
    }

    /// Problem details for a response without any, as from a proxy: the status, the URL, and where it redirects to.
    fn problem_of_status(&self) -> Problem {
        let title = self.status.canonical_reason().unwrap_or("Unknown status");
        let (status, url) = (self.status.as_str(), &self.url);
        match self.location().filter(|_| self.status.is_redirection()) {
            Some(target) => Problem::new(
                title,
                format!(
                    "{status} from {url}, which redirects to {target}; redirects are not followed: if the service is there, \
                     use that address"
                ),
            ),
            None => Problem::new(title, format!("{status} from {url}")),
        }
    }
}

fn is_transient(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// Converts a status and problem details to a [`ClientError`].
pub fn error_of(status: StatusCode, problem: Box<Problem>) -> ClientError {
    match status {
        StatusCode::NOT_FOUND => ClientError::NotFound(problem),
        _ if is_transient(status) => ClientError::TryAgain { status, problem },
        _ => ClientError::Refused { status, problem },
    }
}

/// Parses JSON problem details, with the members that also exist in the CBOR form.
pub fn problem_in_json(members: &serde_json::Value) -> Option<Problem> {
    let text = |name: &str| members.get(name)?.as_str();
    let mut problem = Problem::new(text("title")?, text("detail").unwrap_or_default());
    if let Some(code) = text("code") {
        problem = problem.code(code);
    }
    if let Some(rule) = text("rule") {
        problem = problem.rule(rule);
    }
    if let Some(offset) = members.get("offset").and_then(serde_json::Value::as_u64) {
        problem = problem.offset(usize::try_from(offset).ok()?);
    }
    Some(problem)
}

/// Parses a base URL; adds a trailing slash. Fails unless it is `http` or `https`.
pub fn prefix(url: &str) -> Result<Url, ClientError> {
    let mut url = Url::parse(url).map_err(|error| ClientError::Setup(format!("{url}: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ClientError::Setup(format!("{url}: not an HTTP URL")));
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

/// Reads a body of at most `most` bytes.
pub async fn read_bounded(mut response: Response, most: usize) -> Result<Bytes, ClientError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| broken_off(response.url(), error))? {
        if body.len() + chunk.len() > most {
            let url = response.url();
            return Err(ClientError::Nonsense(format!(
                "{url}: the answer is larger than {} KiB",
                most >> 10
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Converts the error of a body that did not come to its end.
fn broken_off(url: &Url, error: reqwest::Error) -> ClientError {
    ClientError::Unreachable(format!("the answer from {url} broke off: {}", with_causes(error)))
}

/// Converts an HTTP error to [`ClientError::Unreachable`] with all its causes.
pub fn unreachable(error: reqwest::Error) -> ClientError {
    ClientError::Unreachable(with_causes(error))
}

fn with_causes(error: reqwest::Error) -> String {
    let mut what = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        what = format!("{what}: {cause}");
        source = cause.source();
    }
    what
}

#[cfg(test)]
mod tests {
    use super::problem_in_json;

    #[test]
    fn a_problem_in_json_says_what_one_in_cbor_says() {
        let body = serde_json::json!({
            "type": "about:blank", "title": "Rejected", "detail": "no", "code": "policy", "rule": "exp", "offset": 7
        });
        let problem = problem_in_json(&body).unwrap();
        assert_eq!(
            (problem.get_code(), problem.get_rule(), problem.get_offset()),
            (Some("policy"), Some("exp"), Some(7))
        );
        assert_eq!(problem_in_json(&serde_json::json!([])), None);
    }
}
