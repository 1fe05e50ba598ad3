//! Clock corrections on the admin listener: shows the operator how far the log's time is ahead, and registers the
//! statement that lets the log continue.
//!
//! Not here: the correction statement itself (`registration::clock_correction`), and the moment it takes effect
//! (`sequencer`).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use serving::problem::JsonProblem;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::log::state::Log;
use crate::operator::statements::{self, OperatorError, OperatorRequest, StatementPosition};
use crate::time::now;

/// The routes of clock corrections, with their description: `GET` and `POST /clock`.
pub fn described() -> OpenApiRouter<Arc<Log>> {
    OpenApiRouter::new().routes(routes!(show, correct))
}

/// The newest head's time and this process's clock, as `GET /clock` shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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

/// How far the log's time is ahead of the clock.
#[utoipa::path(
    get,
    path = "/clock",
    operation_id = "clock",
    tag = "Operator",
    responses(
        (status = 200, description = "Both times, and the policy that a correction is signed under", body = LogTime),
        (status = 503, description = "The log cannot be read, or has no policy yet (clock-correction)")
    )
)]
async fn show(State(log): State<Arc<Log>>) -> Result<Json<LogTime>, JsonProblem> {
    let head = log.store.head().await.map_err(|error| refused(OperatorError::unavailable(&error)))?;
    let policy = log
        .policies
        .current()
        .ok_or_else(|| refused(OperatorError::unavailable("the log has no policy yet")))?;
    Ok(Json(LogTime {
        origin: log.identity.origin.clone(),
        size: head.size().get(),
        committed_at: head.at,
        clock: now(),
        policy: BASE64URL_NOPAD.encode(policy.statement.bytes()),
    }))
}

/// Register the statement that lets a log continue whose time is ahead.
#[utoipa::path(
    post,
    path = "/clock",
    operation_id = "correct_clock",
    tag = "Operator",
    request_body = OperatorRequest,
    responses(
        (status = 200, description = "The position of the statement", body = StatementPosition),
        (status = 400, description = "Not JSON, no statement, or refused (clock-correction)"),
        (status = 409, description = "The log halted for another reason (clock-correction)"),
        (status = 503, description = "It is not known yet whether the log took the statement: ask again (clock-correction)")
    )
)]
async fn correct(
    State(log): State<Arc<Log>>,
    request: Result<Json<OperatorRequest>, JsonRejection>,
) -> Result<Json<StatementPosition>, JsonProblem> {
    let Json(request) = request.map_err(|error| refused(OperatorError(error.status(), error.body_text())))?;
    let placed = statements::parsed(&request.statement).map_err(refused)?;
    let placed = statements::register(&log, &placed).await.map_err(refused)?;
    tracing::warn!(index = placed.index, entry_id = placed.entry_id, "the operator corrected the log's time");
    Ok(Json(placed))
}

fn refused(OperatorError(status, detail): OperatorError) -> JsonProblem {
    JsonProblem::new(status, "clock-correction", detail).titled("Clock Not Corrected")
}
