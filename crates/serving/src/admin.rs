//! Routes of an admin listener, with their OpenAPI descriptions: liveness, readiness, metrics.
//!
//! Liveness fails when only a new process can help; readiness fails when the daemon cannot do its work, with the
//! reasons in the body.

use std::fmt::Display;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem, PathsBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Content, ResponseBuilder};
use utoipa_axum::router::UtoipaMethodRouter;

/// Tag of these routes in OpenAPI descriptions.
pub const TAG: &str = "Admin";
/// Content type of Prometheus's text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4";

/// The route `/livez`: 503 with the reason if `stuck` returns one.
pub fn liveness<S>(
    stuck: impl Fn(&S) -> Option<String> + Clone + Send + Sync + 'static,
) -> UtoipaMethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    let summary = "Whether the process works: if not, only a new one helps.";
    let responses = [("200", "It does"), ("503", "It does not: the reason")];
    described(
        ("/livez", "livez"),
        summary,
        &responses,
        get(move |State(state): State<S>| async move {
            match stuck(&state) {
                None => "alive\n".into_response(),
                Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
            }
        }),
    )
}

/// The route `/readyz`: 503 with a line for each of the obstacles, if there are any.
pub fn readiness<S, F>(obstacles: impl Fn(S) -> F + Clone + Send + Sync + 'static) -> UtoipaMethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
    F: Future<Output = Vec<String>> + Send,
{
    let summary = "Whether the daemon can do its work.";
    let responses = [("200", "It can"), ("503", "It cannot: one reason a line")];
    described(
        ("/readyz", "readyz"),
        summary,
        &responses,
        get(move |State(state): State<S>| async move {
            let obstacles = obstacles(state).await;
            if obstacles.is_empty() {
                return "ready\n".into_response();
            }
            (StatusCode::SERVICE_UNAVAILABLE, obstacles.join("\n") + "\n").into_response()
        }),
    )
}

/// The route `/metrics`: the rendered text, or 500.
pub fn metrics<S, F, E>(render: impl Fn(S) -> F + Clone + Send + Sync + 'static) -> UtoipaMethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
    F: Future<Output = Result<String, E>> + Send,
    E: Display + Send,
{
    let summary = "All metrics, in the text format of Prometheus.";
    let responses = [("200", "The metrics"), ("500", "They could not be written: see the log")];
    let route = get(move |State(state): State<S>| async move { rendered(render(state).await) });
    described(("/metrics", "metrics"), summary, &responses, route)
}

fn rendered<E: Display>(text: Result<String, E>) -> Response {
    match text {
        Ok(text) => ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n").into_response()
        }
    }
}

/// A GET route of plain text with its description: path and name, summary, responses by status.
fn described<S>(
    (path, name): (&str, &str),
    summary: &str,
    responses: &[(&str, &str)],
    route: MethodRouter<S>,
) -> UtoipaMethodRouter<S> {
    let operation = OperationBuilder::new().tag(TAG).operation_id(Some(name)).summary(Some(summary));
    let operation = responses.iter().fold(operation, |operation, (status, description)| {
        let text = Content::new(Some(ObjectBuilder::new().schema_type(Type::String)));
        let response = ResponseBuilder::new().description(*description).content("text/plain", text);
        operation.response(*status, response.build())
    });
    let paths = PathsBuilder::new().path(path, PathItem::new(HttpMethod::Get, operation));
    (Vec::new(), paths.build(), route)
}
