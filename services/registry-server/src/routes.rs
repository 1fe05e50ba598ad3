//! HTTP routes: the two documents, conditional requests (RFC 9110, section 13), and problem details (RFC 9457).

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;

use crate::files::{RegistryFiles, UnusableFile, VerifiedDocument};

const JSON: &str = "application/json";
const JSON_PROBLEM: &str = "application/problem+json";
/// A cache may keep the document, and asks at each use whether it is still the current one.
const REVALIDATE: &str = "no-cache";

/// Returns the routes.
pub fn routes(files: Arc<RegistryFiles>) -> Router {
    Router::new()
        .route("/registry.json", get(registry))
        .route("/deltas.json", get(deltas))
        .with_state(files)
        .layer(middleware::map_response(with_problem))
        .layer(CatchPanicLayer::new())
}

async fn registry(State(files): State<Arc<RegistryFiles>>, headers: HeaderMap) -> Response {
    match blocking(files, |files| files.registry()).await {
        Some(Ok((document, ttl_seconds))) => {
            conditional(&headers, document, &format!("max-age={ttl_seconds}"))
        }
        Some(Err(error)) => unusable("registry", &error),
        None => failed(),
    }
}

async fn deltas(State(files): State<Arc<RegistryFiles>>, headers: HeaderMap) -> Response {
    match blocking(files, |files| files.deltas()).await {
        Some(Ok(Some(document))) => conditional(&headers, document, REVALIDATE),
        Some(Ok(None)) => problem(StatusCode::NOT_FOUND, "this server serves no revocation deltas"),
        Some(Err(error)) => unusable("file of deltas", &error),
        None => failed(),
    }
}

/// Reads and verifies outside of the threads that serve connections; `None` if that panicked.
async fn blocking<T: Send + 'static>(
    files: Arc<RegistryFiles>,
    read: impl FnOnce(&RegistryFiles) -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(move || read(&files)).await.ok()
}

/// Returns the document, or 304 if the client has it already.
fn conditional(headers: &HeaderMap, document: VerifiedDocument, caching: &str) -> Response {
    let tag = format!("\"{}\"", document.digest);
    let common = [(ETAG, tag.clone()), (CACHE_CONTROL, caching.to_owned())];
    match names_tag(headers, &tag) {
        true => (StatusCode::NOT_MODIFIED, common).into_response(),
        false => (common, [(CONTENT_TYPE, JSON)], document.bytes).into_response(),
    }
}

/// Returns whether `If-None-Match` names an entity tag, by the weak comparison.
fn names_tag(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|found| found == "*" || found.strip_prefix("W/").unwrap_or(found) == tag)
}

fn unusable(what: &str, error: &UnusableFile) -> Response {
    tracing::warn!(%error, "the {what} is not served");
    // An error of the operating system may name paths; it is in the server's own log.
    let why = match error {
        UnusableFile::Read(_) => "cannot be read".to_owned(),
        other => other.to_string(),
    };
    problem(StatusCode::SERVICE_UNAVAILABLE, &format!("the {what} {why}"))
}

fn failed() -> Response {
    problem(StatusCode::INTERNAL_SERVER_ERROR, "the server failed")
}

fn problem(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or_default();
    let body = json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail });
    (status, [(CONTENT_TYPE, JSON_PROBLEM)], Json(body).into_response().into_body()).into_response()
}

/// Adds problem details to the errors of the router.
async fn with_problem(response: Response) -> Response {
    let detail = match response.status() {
        StatusCode::NOT_FOUND => "the documents are /registry.json and /deltas.json",
        StatusCode::METHOD_NOT_ALLOWED => "the documents are read with GET or HEAD",
        _ => return response,
    };
    if response.headers().contains_key(CONTENT_TYPE) {
        return response;
    }
    let mut answer = problem(response.status(), detail);
    answer.headers_mut().extend(response.headers().get(ALLOW).cloned().map(|allow| (ALLOW, allow)));
    answer
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_entity_tag_is_found_in_a_list_weak_or_not() {
        let named = |value: &str| {
            let headers = HeaderMap::from_iter([(IF_NONE_MATCH, value.parse().unwrap())]);
            names_tag(&headers, "\"a\"")
        };
        assert!(named("\"a\"") && named("\"b\", W/\"a\"") && named("*"));
        assert!(!named("\"b\"") && !named("a") && !names_tag(&HeaderMap::new(), "\"a\""));
    }
}
