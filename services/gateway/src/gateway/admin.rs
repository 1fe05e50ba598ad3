//! Health and metrics, on a listener of their own.
//!
//! `/livez`: the process answers. `/readyz`: calls can be decided; status 503 with the reason while evidence cannot be
//! committed, or the outbox is full. `/metrics`: Prometheus text format.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use serde_json::json;

use crate::decision_writer::{DecisionWriter, WriterStatus};
use crate::telemetry::Telemetry;

/// The routes of health and metrics.
pub fn routes(writer: DecisionWriter, telemetry: Arc<Telemetry>) -> Router {
    let measured = writer.clone();
    let text = move || std::future::ready(telemetry.render(&measured.status()));
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", serving::admin::metrics(text))
        .with_state(writer)
}

async fn ready(State(writer): State<DecisionWriter>) -> Response {
    let status = writer.status();
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
fn why_not(status: &WriterStatus) -> Option<String> {
    status.store_failing.clone().or_else(|| status.backpressure.clone())
}
