//! Legal holds, on the admin listener: an entry that a case needs is not erased until the case is over.
//!
//! A hold is a statement of the operator on the log, and so is its release (`registration::operator`). The database keeps a row
//! of each hold, written with the entry, which says since when and outlives its end.

use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use merkle::{EntryDigest, LeafIndex};
use registration::operator::Held;
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::custody::CASE_BYTES;
use store::{Hold, StoreError};

use crate::edge::problem;
use crate::limits::HOLDS_PAGE;
use crate::log::state::Log;
use crate::operator::effects;
use crate::operator::statements::{self, OperatorError, OperatorRequest};
use crate::time::rfc3339;

/// The routes of holds.
pub fn routes(log: Arc<Log>) -> Router {
    Router::new()
        .route("/holds", get(list).post(begin).delete(end))
        .route("/holds/next", get(next))
        .with_state(log)
}

/// An entry and a case, as query parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldQuery {
    entry_id: String,
    case: String,
}

/// A hold, as shown to the operator.
#[derive(Debug, Serialize)]
struct HoldView {
    entry_id: String,
    index: u64,
    case: String,
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<String>,
    /// Entry ID of the statement that began the hold; only in the response to its registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<String>,
}

/// The parameters of the next hold or release statement about an entry and a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextHold {
    /// Its number: even of a hold, odd of a release. So the case holds the entry if it is odd.
    pub number: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldsPage {
    after: Option<u64>,
}

/// A failed request, as problem details.
struct HoldsError(StatusCode, String);

impl IntoResponse for HoldsError {
    fn into_response(self) -> Response {
        let HoldsError(status, detail) = self;
        let title = status.canonical_reason().unwrap_or("Request Failed");
        problem::on_admin(status, title, "hold", &detail)
    }
}

impl From<OperatorError> for HoldsError {
    fn from(OperatorError(status, detail): OperatorError) -> Self {
        Self(status, detail)
    }
}

async fn list(
    State(log): State<Arc<Log>>,
    page: Result<Query<HoldsPage>, QueryRejection>,
) -> Result<Response, HoldsError> {
    let Query(page) = page.map_err(|error| HoldsError(StatusCode::BAD_REQUEST, error.to_string()))?;
    let holds = log.store.holds(page.after.map(LeafIndex::new), HOLDS_PAGE).await.map_err(holds_error)?;
    let mut views = Vec::with_capacity(holds.len());
    for hold in holds {
        views.push(view(&log, hold).await?);
    }
    Ok(Json(json!({ "holds": views })).into_response())
}

/// Handles `GET /holds/next`: the number of the next statement about an entry and a case.
async fn next(
    State(log): State<Arc<Log>>,
    request: Result<Query<HoldQuery>, QueryRejection>,
) -> Result<Json<NextHold>, HoldsError> {
    let Query(request) = request.map_err(|error| HoldsError(StatusCode::BAD_REQUEST, error.to_string()))?;
    let digest = named(&log, &request).await?;
    let number = effects::next_number(&*log.store, &digest, &request.case).await.map_err(holds_error)?;
    Ok(Json(NextHold { number }))
}

async fn begin(
    State(log): State<Arc<Log>>,
    request: Result<Json<OperatorRequest>, JsonRejection>,
) -> Result<Response, HoldsError> {
    let (statement, held) = stated(request, "hold")?;
    let placed = statements::register(&log, &statement).await?;
    tracing::info!(entry = %held.entry, case = held.case, statement = placed.entry_id, "hold");
    let leaf = log.index_of(held.entry).await.map_err(holds_error)?;
    let before = leaf.and_then(|leaf| leaf.get().checked_sub(1)).map(LeafIndex::new);
    let holds = log.store.holds(before, 1).await.map_err(holds_error)?;
    let is_it = |hold: &Hold| Some(hold.entry) == leaf && hold.case == held.case && hold.released.is_none();
    match holds.into_iter().find(is_it) {
        Some(hold) => {
            let statement = Some(placed.entry_id);
            Ok(Json(HoldView { statement, ..view(&log, hold).await? }).into_response())
        }
        None => Err(HoldsError(StatusCode::CONFLICT, "the hold has ended meanwhile".to_owned())),
    }
}

async fn end(
    State(log): State<Arc<Log>>,
    request: Result<Json<OperatorRequest>, JsonRejection>,
) -> Result<Response, HoldsError> {
    let (statement, held) = stated(request, "release")?;
    let placed = statements::register(&log, &statement).await?;
    tracing::info!(entry = %held.entry, case = held.case, statement = placed.entry_id, "hold released");
    Ok(Json(placed).into_response())
}

/// Parses the statement and its action; 400 unless the action is named `action`.
fn stated(
    request: Result<Json<OperatorRequest>, JsonRejection>,
    action: &str,
) -> Result<(SignedStatement, Held), HoldsError> {
    let Json(request) = request.map_err(|error| HoldsError(error.status(), error.body_text()))?;
    let statement = statements::parsed(&request.statement)?;
    let stated = effects::action_of(&statement).filter(|stated| stated.name() == action);
    let held = stated.as_ref().and_then(|stated| stated.held()).cloned();
    let held =
        held.ok_or_else(|| HoldsError(StatusCode::BAD_REQUEST, format!("the statement is no {action}")))?;
    Ok((statement, held))
}

async fn named(log: &Log, request: &HoldQuery) -> Result<EntryDigest, HoldsError> {
    if request.case.is_empty()
        || request.case.len() > CASE_BYTES
        || request.case.chars().any(char::is_control)
    {
        let why = format!("a case has a name of 1 to {CASE_BYTES} bytes without control characters");
        return Err(HoldsError(StatusCode::BAD_REQUEST, why));
    }
    let digest: EntryDigest = request.entry_id.parse().map_err(|_| {
        HoldsError(StatusCode::BAD_REQUEST, "an entry ID is 64 lowercase hex digits".to_owned())
    })?;
    let leaf = log.index_of(digest).await.map_err(holds_error)?;
    match leaf {
        Some(_) => Ok(digest),
        None => Err(HoldsError(StatusCode::NOT_FOUND, format!("{digest} is not in this log"))),
    }
}

async fn view(log: &Log, hold: Hold) -> Result<HoldView, HoldsError> {
    let entry = log.store.entry(hold.entry).await.map_err(holds_error)?;
    Ok(HoldView {
        entry_id: entry.map(|entry| entry.digest.to_string()).unwrap_or_default(),
        index: hold.entry.get(),
        case: hold.case,
        since: rfc3339(hold.at),
        released: hold.released.and_then(rfc3339),
        statement: None,
    })
}

fn holds_error(error: StoreError) -> HoldsError {
    let status = match error {
        StoreError::Refused(_) | StoreError::Frozen | StoreError::InUse(_) | StoreError::NoLog(_) => {
            StatusCode::CONFLICT
        }
        StoreError::Unavailable(_) | StoreError::Storage(..) => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    HoldsError(status, error.to_string())
}
