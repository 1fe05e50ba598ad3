//! Health and metrics, on a listener of their own.
//!
//! `/livez`: the process answers. `/readyz`: calls can be decided; status 503 with the reason while evidence cannot be
//! committed, or the outbox is full. `/metrics`: Prometheus text format.

use std::io;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::{StatusCode, header};
use serde_json::json;
use tokio::net::TcpListener;

use crate::desk::{Desk, Status};
use crate::listener::Listener;
use crate::telemetry::Telemetry;

#[derive(Clone)]
struct Seen {
    desk: Desk,
    telemetry: Arc<Telemetry>,
}

/// Serves health and metrics on this listener.
///
/// # Errors
/// If the listener has no local address.
pub(crate) fn serve(listener: TcpListener, desk: Desk, telemetry: Arc<Telemetry>) -> io::Result<Listener> {
    let router = Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(Seen { desk, telemetry });
    Listener::serve(listener, router, "health and metrics")
}

async fn ready(State(seen): State<Seen>) -> Response {
    let status = seen.desk.status();
    let why = why_not(&status);
    let code = if why.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let told = json!({
        "ready": why.is_none(),
        "because": why,
        "log": status.log_silent.as_deref().unwrap_or("answers"),
        "evidence_pending": status.backlog.records,
        "evidence_stuck": status.backlog.stuck,
    });
    (code, Json(told)).into_response()
}

/// The reason why no call can be decided now, if any.
fn why_not(status: &Status) -> Option<String> {
    status.store_failing.clone().or_else(|| status.backpressure.clone())
}

async fn metrics(State(seen): State<Seen>) -> Response {
    let text = seen.telemetry.render(&seen.desk.status());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
