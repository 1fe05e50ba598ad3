//! Health and metrics, on a listener of their own.
//!
//! `/livez`: the process answers. `/readyz`: calls can be decided; status 503 with the reason while evidence cannot be
//! committed, or the outbox is full. `/metrics`: Prometheus text format.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use http::StatusCode;
use serde::Serialize;
use serving::admin;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::decision_writer::{ClockDifference, DecisionWriter, WriterStatus};
use crate::telemetry::Telemetry;

/// What health and metrics are read from.
#[derive(Clone)]
pub struct AdminState {
    /// The decision writer.
    pub writer: DecisionWriter,
    /// The metrics.
    pub telemetry: Arc<Telemetry>,
}

/// Whether calls can be decided.
#[derive(Serialize, ToSchema)]
struct Readiness {
    /// `true` if calls can be decided.
    ready: bool,
    /// The reason why they cannot.
    because: Option<String>,
    /// `answers`, or the reason why the log takes no records.
    log: String,
    /// `agrees`, or by how much the clock is ahead of the database server's or behind it. `null` with SQLite.
    clock: Option<String>,
    /// Records that wait for the log.
    evidence_pending: u64,
    /// Records that the log refuses for good.
    evidence_stuck: u64,
}

/// The routes of health and metrics.
pub fn routes(state: AdminState) -> Router {
    Router::from(described()).with_state(state)
}

/// The routes with their OpenAPI description.
pub fn described() -> OpenApiRouter<AdminState> {
    let text = |state: AdminState| std::future::ready(state.telemetry.render(&state.writer.status()));
    OpenApiRouter::new()
        .routes(admin::liveness(|_| None))
        .routes(routes!(healthz))
        .routes(routes!(ready))
        .routes(admin::metrics(text))
}

/// The older name of `/livez`.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "Admin",
    responses((status = 200, description = "The process answers", body = String, content_type = "text/plain"))
)]
async fn healthz() -> &'static str {
    "alive\n"
}

/// Whether calls can be decided.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "readyz",
    tag = "Admin",
    responses(
        (status = 200, description = "They can", body = Readiness),
        (status = 503, description = "They cannot: evidence cannot be committed, or the outbox is full", body = Readiness)
    )
)]
async fn ready(State(state): State<AdminState>) -> Response {
    let status = state.writer.status();
    let why = why_not(&status);
    let code = if why.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let readiness = Readiness {
        ready: why.is_none(),
        because: why,
        log: status.log_silent.unwrap_or_else(|| "answers".to_owned()),
        clock: status.clock_difference.map(clock_words),
        evidence_pending: status.backlog.records,
        evidence_stuck: status.backlog.stuck,
    };
    (code, Json(readiness)).into_response()
}

/// The difference from the clock of the database's server, in words. Calls are decided all the same: a load balancer that
/// took out a gateway whose clock agrees less would take out all of them if it is the server's clock that is wrong.
fn clock_words(difference: ClockDifference) -> String {
    match difference.is_tolerated() {
        true => "agrees".to_owned(),
        false => difference.to_string(),
    }
}

/// The reason why no call can be decided now, if any.
fn why_not(status: &WriterStatus) -> Option<String> {
    status.store_failing.clone().or_else(|| status.backpressure.clone())
}
