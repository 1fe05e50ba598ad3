//! HTTP routes with their OpenAPI description: the two documents, conditional requests (RFC 9110, section 13), and problem details
//! (RFC 9457); health and metrics on the admin listener.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Router, middleware};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use serving::http_metrics::measured;
use serving::problem::{JsonProblem, ProblemDetails, for_every_error};
use serving::{admin, description, request_span};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::files::{RegistryFiles, UnusableFile, VerifiedDocument};
use crate::metrics::{DELTAS, Metrics, REGISTRY};

const JSON: &str = "application/json";
/// A cache may keep the document, and asks at each use whether it is still the current one.
const REVALIDATE: &str = "no-cache";
/// The text about a defect of the server.
const FAILED: &str = "the server failed";
/// What the public listener has, for the 404 of other paths.
const RESOURCES: &str =
    "the documents are /registry.json, /deltas.json and /openapi.json, to be read with GET or HEAD";

/// State shared by the routes.
#[derive(Clone)]
pub struct ServerState {
    /// The files that are served.
    pub files: Arc<RegistryFiles>,
    /// Counts requests.
    pub metrics: Arc<Metrics>,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tabellion registry server",
        description = "Serves an Agent Identity Registry (AgentROA) and its revocation deltas, which their operator has signed. Every 4xx \
                       and 5xx of the public listener is RFC 9457 JSON. Every response has the request's number in X-Request-Id.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "Registry", description = "The public listener: for gateways"),
        (name = "Admin", description = "The admin listener: health and metrics")
    )
)]
struct Description;

/// The OpenAPI description of both listeners.
fn openapi_json() -> String {
    let listeners = described_public().into_openapi().merge_from(described_admin().into_openapi());
    description::text(&Description::openapi().merge_from(listeners))
}

/// Returns the public routes: `/registry.json` and `/deltas.json`.
pub fn public(state: ServerState) -> Router {
    let http = state.metrics.http.clone();
    for_every_error(served(described_public(), state), RESOURCES)
        .layer(middleware::from_fn(request_span::in_span))
        .layer(middleware::from_fn_with_state(http, measured))
}

/// Returns the routes of the admin listener: `/livez`, `/readyz` and `/metrics`.
pub fn admin(state: ServerState) -> Router {
    served(described_admin(), state)
}

/// Adds the description, which both listeners serve.
fn served(routes: OpenApiRouter<ServerState>, state: ServerState) -> Router {
    Router::from(routes).route(description::PATH, description::document(openapi_json())).with_state(state)
}

fn described_public() -> OpenApiRouter<ServerState> {
    OpenApiRouter::new().routes(routes!(registry)).routes(routes!(deltas))
}

fn described_admin() -> OpenApiRouter<ServerState> {
    let text = |state: ServerState| async move {
        let text = tokio::task::spawn_blocking(move || state.metrics.text(&state.files)).await;
        text.unwrap_or_else(|error| Err(prometheus::Error::Msg(error.to_string())))
    };
    OpenApiRouter::new()
        .routes(admin::liveness(|_| None))
        .routes(admin::readiness(obstacles))
        .routes(admin::metrics(text))
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

/// The version of the registry that is in force.
#[utoipa::path(
    get,
    path = "/registry.json",
    tag = "Registry",
    params(("If-None-Match" = Option<String>, Header, description = "The ETag of the version that the client has")),
    responses(
        (status = 200, description = "The registry, as its operator signed it", body = Object,
         headers(
             ("ETag" = String, description = "SHA-256 of the document"),
             ("Cache-Control" = String, description = "The time for which a cache may keep it: its ttl_seconds")
         )),
        (status = 304, description = "The client has this version"),
        (status = 500, description = "A defect of the server", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "The file cannot be read, does not verify, or is an earlier version than before", body = ProblemDetails,
         content_type = "application/problem+json")
    )
)]
async fn registry(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    let answer = match blocking(state.files, |files| files.registry()).await {
        Some(Ok((document, ttl_seconds))) => {
            conditional(&headers, document, &format!("max-age={ttl_seconds}"))
        }
        Some(Err(error)) => unusable("registry", &error),
        None => JsonProblem::internal().into_response(),
    };
    state.metrics.answered(REGISTRY, answer.status());
    answer
}

/// The newest revocation deltas, oldest first.
#[utoipa::path(
    get,
    path = "/deltas.json",
    tag = "Registry",
    params(("If-None-Match" = Option<String>, Header, description = "The ETag of the list that the client has")),
    responses(
        (status = 200, description = "The deltas, as the registry's operator signed them", body = Vec<Object>,
         headers(
             ("ETag" = String, description = "SHA-256 of the document"),
             ("Cache-Control" = String, description = "Always no-cache: a cache revalidates at each use")
         )),
        (status = 304, description = "The client has this list"),
        (status = 404, description = "This server serves no deltas", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "A defect of the server", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "The file cannot be read, or does not verify", body = ProblemDetails, content_type = "application/problem+json")
    )
)]
async fn deltas(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    let answer = match blocking(state.files, |files| files.deltas()).await {
        Some(Ok(Some(document))) => conditional(&headers, document, REVALIDATE),
        Some(Ok(None)) => {
            let detail = "this server serves no revocation deltas";
            JsonProblem::new(StatusCode::NOT_FOUND, "not-found", detail).into_response()
        }
        Some(Err(error)) => unusable("file of deltas", &error),
        None => JsonProblem::internal().into_response(),
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
    let detail = reason(what, error);
    JsonProblem::new(StatusCode::SERVICE_UNAVAILABLE, "registry-unusable", detail).into_response()
}

/// The reason why a file is not served. An error of the operating system may name paths; it is in the server's own log.
fn reason(what: &str, error: &UnusableFile) -> String {
    match error {
        UnusableFile::Read(_) => format!("the {what} cannot be read"),
        other => format!("the {what} {other}"),
    }
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
