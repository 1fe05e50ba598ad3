//! HTTP routes: the two documents, conditional requests (RFC 9110, section 13), and problem details (RFC 9457); health and
//! metrics on the admin listener.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use serde_json::json;
use serving::problem::documentation;
use serving::{admin, request_span};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

use crate::files::{RegistryFiles, UnusableFile, VerifiedDocument};
use crate::metrics::{DELTAS, Metrics, REGISTRY};

const JSON: &str = "application/json";
const JSON_PROBLEM: &str = "application/problem+json";
/// A cache may keep the document, and asks at each use whether it is still the current one.
const REVALIDATE: &str = "no-cache";
/// The text about a defect of the server.
const FAILED: &str = "the server failed";

/// State shared by the routes.
#[derive(Clone)]
pub struct ServerState {
    /// The files that are served.
    pub files: Arc<RegistryFiles>,
    /// Counts requests.
    pub metrics: Arc<Metrics>,
}

/// Returns the public routes: `/registry.json` and `/deltas.json`.
pub fn public(state: ServerState) -> Router {
    Router::new()
        .route("/registry.json", get(registry))
        .route("/deltas.json", get(deltas))
        .with_state(state)
        .layer(middleware::map_response(with_problem))
        .layer(CatchPanicLayer::new())
        .layer(middleware::from_fn(request_span::in_span))
}

/// Returns the routes of the admin listener: `/livez`, `/readyz` and `/metrics`.
pub fn admin(state: ServerState) -> Router {
    let text = |state: ServerState| async move {
        let text = tokio::task::spawn_blocking(move || state.metrics.text(&state.files)).await;
        text.unwrap_or_else(|error| Err(prometheus::Error::Msg(error.to_string())))
    };
    let routes = OpenApiRouter::new()
        .routes(admin::liveness(|_| None))
        .routes(admin::readiness(obstacles))
        .routes(admin::metrics(text));
    Router::from(routes).with_state(state)
}

/// Returns the reasons why a document is not served.
async fn obstacles(state: ServerState) -> Vec<String> {
    let found = blocking(state.files, |files| {
        let registry = files.registry().err().map(|error| reason("registry", &error));
        let deltas = files.deltas().err().map(|error| reason("file of deltas", &error));
        registry.into_iter().chain(deltas).collect::<Vec<_>>()
    });
    found.await.unwrap_or_else(|| vec![FAILED.to_owned()])
}

async fn registry(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    let answer = match blocking(state.files, |files| files.registry()).await {
        Some(Ok((document, ttl_seconds))) => {
            conditional(&headers, document, &format!("max-age={ttl_seconds}"))
        }
        Some(Err(error)) => unusable("registry", &error),
        None => failed(),
    };
    state.metrics.answered(REGISTRY, answer.status());
    answer
}

async fn deltas(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    let answer = match blocking(state.files, |files| files.deltas()).await {
        Some(Ok(Some(document))) => conditional(&headers, document, REVALIDATE),
        Some(Ok(None)) => {
            problem(StatusCode::NOT_FOUND, "not-found", "this server serves no revocation deltas")
        }
        Some(Err(error)) => unusable("file of deltas", &error),
        None => failed(),
    };
    state.metrics.answered(DELTAS, answer.status());
    answer
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
    problem(StatusCode::SERVICE_UNAVAILABLE, "registry-unusable", &reason(what, error))
}

/// The reason why a file is not served. An error of the operating system may name paths; it is in the server's own log.
fn reason(what: &str, error: &UnusableFile) -> String {
    match error {
        UnusableFile::Read(_) => format!("the {what} cannot be read"),
        other => format!("the {what} {other}"),
    }
}

fn failed() -> Response {
    problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", FAILED)
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = json!({
        "type": documentation(code),
        "title": status.canonical_reason().unwrap_or_default(),
        "status": status.as_u16(),
        "detail": detail,
        "code": code,
    });
    (status, [(CONTENT_TYPE, JSON_PROBLEM)], Json(body).into_response().into_body()).into_response()
}

/// Adds problem details to the errors of the router.
async fn with_problem(response: Response) -> Response {
    let (code, detail) = match response.status() {
        StatusCode::NOT_FOUND => ("not-found", "the documents are /registry.json and /deltas.json"),
        StatusCode::METHOD_NOT_ALLOWED => ("method", "the documents are read with GET or HEAD"),
        _ => return response,
    };
    if response.headers().contains_key(CONTENT_TYPE) {
        return response;
    }
    let mut answer = problem(response.status(), code, detail);
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
