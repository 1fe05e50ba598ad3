//! Clock corrections on the admin listener: shows the operator how far the log's time is ahead, and registers the
//! statement that lets the log continue.
//!
//! Not here: the correction statement itself (`registration::clock_correction`), and the moment it takes effect
//! (`sequencer`).

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use data_encoding::BASE64URL_NOPAD;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::edge::problem;
use crate::log::state::Log;
use crate::operator::statements::{self, OperatorRequest};
use crate::time::now;

/// The routes of clock corrections: `GET` and `POST /clock`.
pub fn routes(log: Arc<Log>) -> Router {
    Router::new().route("/clock", get(show).post(correct)).with_state(log)
}

/// The newest head's time and this process's clock, as `GET /clock` shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogTime {
    /// The log's origin.
    pub origin: String,
    /// The size of the newest committed head.
    pub size: u64,
    /// The time in this head, in Unix seconds.
    pub committed_at: u64,
    /// The time of this process's clock, in Unix seconds.
    pub clock: u64,
    /// The signed policy in force, as base64url without padding.
    pub policy: String,
}

async fn show(State(log): State<Arc<Log>>) -> Result<Json<LogTime>, CorrectionError> {
    let head = log.store.head().await.map_err(|error| CorrectionError::unavailable(&error))?;
    let policy =
        log.policies.current().ok_or_else(|| CorrectionError::unavailable("the log has no policy yet"))?;
    Ok(Json(LogTime {
        origin: log.identity.origin.clone(),
        size: head.size().get(),
        committed_at: head.at,
        clock: now(),
        policy: BASE64URL_NOPAD.encode(policy.statement.bytes()),
    }))
}

async fn correct(
    State(log): State<Arc<Log>>,
    request: Result<Json<OperatorRequest>, JsonRejection>,
) -> Result<Response, CorrectionError> {
    let Json(request) = request.map_err(|error| CorrectionError(error.status(), error.body_text()))?;
    let placed = statements::parsed(&request.statement).map_err(CorrectionError::of)?;
    let placed = statements::register(&log, &placed).await.map_err(CorrectionError::of)?;
    tracing::warn!(index = placed.index, entry_id = placed.entry_id, "the operator corrected the log's time");
    Ok(Json(placed).into_response())
}

/// A failed request, as problem details.
struct CorrectionError(StatusCode, String);

impl CorrectionError {
    fn of(statements::OperatorError(status, detail): statements::OperatorError) -> Self {
        Self(status, detail)
    }

    fn unavailable(why: impl std::fmt::Display) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, why.to_string())
    }
}

impl IntoResponse for CorrectionError {
    fn into_response(self) -> Response {
        let Self(status, detail) = self;
        let title = "Clock Not Corrected";
        problem::on_admin(status, title, "clock-correction", &detail)
    }
}
