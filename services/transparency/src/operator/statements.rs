//! Statements of the operator on the admin listener.
//!
//! Freezes, holds and releases are entries like all others, so a client with the operator's signature may also register
//! them at the public listener.
//!
//! Not here: their effect on the database (`effects`), the content of the statements and the permission to sign them (`registration::operator`).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64URL_NOPAD;
use http::StatusCode;
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use serving::problem;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::edge::problem::Problem;
use crate::log::registration_outcome::{RegisterError, Registered};
use crate::log::state::Log;

/// The route of the operator's statements, with its description: `GET` and `POST /operator`.
pub fn described() -> OpenApiRouter<Arc<Log>> {
    OpenApiRouter::new().routes(routes!(show, submit))
}

/// The data needed to sign a statement of the operator, as `GET /operator` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogPolicy {
    /// The log's origin.
    pub origin: String,
    /// The signed policy in force, as base64url without padding.
    pub policy: String,
}

/// The body of `POST /operator`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorRequest {
    /// The signed statement, as base64url without padding.
    pub statement: String,
}

/// The position of a registered statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StatementPosition {
    /// The statement's entry ID.
    pub entry_id: String,
    /// The statement's leaf.
    pub index: u64,
}

/// What is needed to sign a statement of the operator.
#[utoipa::path(
    get,
    path = "/operator",
    operation_id = "operator_policy",
    tag = "Operator",
    responses(
        (status = 200, description = "The log's name and its policy", body = LogPolicy),
        (status = 503, description = "The log has no policy yet (operator-statement)")
    )
)]
async fn show(State(log): State<Arc<Log>>) -> Result<Json<LogPolicy>, OperatorError> {
    let policy =
        log.policies.current().ok_or_else(|| OperatorError::unavailable("the log has no policy yet"))?;
    let policy = BASE64URL_NOPAD.encode(policy.statement.bytes());
    Ok(Json(LogPolicy { origin: log.identity.origin.clone(), policy }))
}

/// Register a statement of the operator, and wait until it has a leaf.
#[utoipa::path(
    post,
    path = "/operator",
    operation_id = "operator_statement",
    tag = "Operator",
    request_body = OperatorRequest,
    responses(
        (status = 200, description = "The position of the statement", body = StatementPosition),
        (status = 400, description = "Not JSON, no statement, or refused by the policy (operator-statement)"),
        (status = 409, description = "The log halted, or the statement contradicts a registered one (operator-statement)"),
        (status = 503, description = "It is not known yet whether the log took the statement: ask again (operator-statement)")
    )
)]
async fn submit(
    State(log): State<Arc<Log>>,
    request: Result<Json<OperatorRequest>, JsonRejection>,
) -> Result<Json<StatementPosition>, OperatorError> {
    let Json(request) = request.map_err(|error| OperatorError(error.status(), error.body_text()))?;
    register(&log, &parsed(&request.statement)?).await.map(Json)
}

/// Decodes and parses the statement of a request; 400 if it is malformed.
pub fn parsed(statement: &str) -> Result<SignedStatement, OperatorError> {
    let bytes = BASE64URL_NOPAD.decode(statement.as_bytes()).map_err(|error| OperatorError::bad(&error))?;
    SignedStatement::parse(bytes::Bytes::from(bytes)).map_err(|error| OperatorError::bad(&error))
}

/// Registers a statement, and waits until it has a leaf.
pub async fn register(log: &Log, statement: &SignedStatement) -> Result<StatementPosition, OperatorError> {
    let entry_id = statement.digest().to_string();
    match log.register(statement, None).await.map_err(refused)? {
        Registered::Receipt { index, .. } => {
            tracing::warn!(%index, entry_id, "registered a statement of the operator");
            Ok(StatementPosition { entry_id, index: index.get() })
        }
        Registered::Later => Err(OperatorError::unavailable(
            "it is not known yet whether the log took the statement: ask again",
        )),
    }
}

/// A failed request, as problem details.
pub struct OperatorError(pub StatusCode, pub String);

impl OperatorError {
    pub fn bad(why: &dyn std::fmt::Display) -> Self {
        Self(StatusCode::BAD_REQUEST, why.to_string())
    }

    pub fn unavailable(why: impl std::fmt::Display) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, why.to_string())
    }
}

/// Translates a failed registration. Unlike the public, the operator sees the reason for a halt.
fn refused(error: RegisterError) -> OperatorError {
    match error {
        RegisterError::Halted { why, .. } => OperatorError(StatusCode::CONFLICT, why),
        error => {
            let problem = Problem::from(error);
            OperatorError(problem.status, problem.detail.into_owned())
        }
    }
}

impl IntoResponse for OperatorError {
    fn into_response(self) -> Response {
        let Self(status, detail) = self;
        problem::JsonProblem::new(status, "operator-statement", detail)
            .titled("Not Registered")
            .into_response()
    }
}
