//! Handlers of an admin listener: liveness, readiness, metrics.
//!
//! Liveness fails when only a new process can help; readiness fails when the daemon cannot do its work, with the
//! reasons in the body.

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::StatusCode;
use http::header::CONTENT_TYPE;

/// Content type of Prometheus's text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4";

/// Handler of `/livez`: 503 with the reason if `stuck` returns one.
pub fn liveness<S>(stuck: impl Fn() -> Option<String> + Clone + Send + Sync + 'static) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    get(move || async move {
        match stuck() {
            None => "alive\n".into_response(),
            Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
        }
    })
}

/// Handler of `/readyz`: 503 with a line for each of the obstacles, if there are any.
pub fn readiness<S, F>(obstacles: impl Fn() -> F + Clone + Send + Sync + 'static) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
    F: Future<Output = Vec<String>> + Send,
{
    get(move || async move {
        let obstacles = obstacles().await;
        if obstacles.is_empty() {
            return "ready\n".into_response();
        }
        (StatusCode::SERVICE_UNAVAILABLE, obstacles.join("\n") + "\n").into_response()
    })
}

/// Handler of `/metrics`: the rendered text, or 500.
pub fn metrics<S, F, E>(render: impl Fn() -> F + Clone + Send + Sync + 'static) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
    F: Future<Output = Result<String, E>> + Send,
    E: Display + Send,
{
    get(move || async move { rendered(render().await) })
}

fn rendered<E: Display>(text: Result<String, E>) -> Response {
    match text {
        Ok(text) => ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
