//! Health and metrics, on a listener of their own.
//!
//! `/livez` fails when only a new process can help; `/readyz` when the service cannot register: the reasons stand in
//! the body. Nothing here is meant for the public.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{Method, StatusCode};

use crate::metrics::Metrics;
use crate::problem;

/// Says whether the service can register, and why not.
#[async_trait::async_trait]
pub trait Readiness: Send + Sync {
    /// Every reason against it; none means ready.
    async fn obstacles(&self) -> Vec<String>;

    /// Why only a new process can help; `None` while this one works or recovers by itself.
    fn stuck(&self) -> Option<String> {
        None
    }

    /// Brings gauges up to date that nobody updates as things happen.
    fn refresh(&self) {}
}

#[derive(Clone)]
struct Admin {
    readiness: Arc<dyn Readiness>,
    metrics: Arc<Metrics>,
}

/// The admin listener's routes.
pub fn routes(readiness: Arc<dyn Readiness>, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text))
        .with_state(Admin { readiness, metrics })
}

/// Turns away what a web page makes the operator's browser send: it names the page that asks, and no tool of an operator
/// does. Reading harms nobody, and no page is let see the answer.
pub async fn refuse_web_pages(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads || !request.headers().contains_key(ORIGIN) {
        return next.run(request).await;
    }
    let detail = "The admin listener does nothing for a web page: the request has an Origin header";
    problem::on_admin(StatusCode::FORBIDDEN, "Forbidden", "from-a-web-page", detail)
}

async fn livez(State(admin): State<Admin>) -> Response {
    match admin.readiness.stuck() {
        None => "alive\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let obstacles = admin.readiness.obstacles().await;
    if obstacles.is_empty() {
        return "ready\n".into_response();
    }
    let mut body = obstacles.join("\n");
    body.push('\n');
    (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
}

async fn text(State(admin): State<Admin>) -> Response {
    admin.readiness.refresh();
    match admin.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
