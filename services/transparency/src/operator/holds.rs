//! Legal holds, on the admin listener: an entry that a case needs is not erased until the case is over.
//!
//! A hold is a statement of the operator on the log, and so is its release (`registration::operator`). The database keeps a row
//! of each hold, written with the entry, which says since when and outlives its end.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use http::StatusCode;
use merkle::{EntryDigest, LeafIndex};
use registration::operator::Held;
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use serving::problem::JsonProblem;
use store::custody::CASE_BYTES;
use store::{Hold, StoreError};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::limits::HOLDS_PAGE;
use crate::log::state::Log;
use crate::operator::effects;
use crate::operator::statements::{self, OperatorError, OperatorRequest, StatementPosition};
use crate::time::rfc3339;

/// The routes of holds, with their description.
pub fn described() -> OpenApiRouter<Arc<Log>> {
    OpenApiRouter::new().routes(routes!(list, begin, end)).routes(routes!(next))
}

/// An entry and a case, as query parameters.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct HoldQuery {
    /// The entry ID.
    entry_id: String,
    /// The name of the case.
    case: String,
}

/// A page of holds.
#[derive(Debug, Serialize, ToSchema)]
struct HoldList {
    /// The holds, by leaf.
    holds: Vec<HoldView>,
}

/// A hold, as shown to the operator.
#[derive(Debug, Serialize, ToSchema)]
struct HoldView {
    /// The ID of the entry that is held.
    entry_id: String,
    /// Its leaf.
    index: u64,
    /// The name of the case.
    case: String,
    /// When the hold began (RFC 3339).
    since: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<String>,
    /// Entry ID of the statement that began the hold; only in the response to its registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<String>,
}

/// The parameters of the next hold or release statement about an entry and a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NextHold {
    /// Its number: even of a hold, odd of a release. So the case holds the entry if it is odd.
    pub number: u64,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct HoldsPage {
    /// The leaf of the last hold of the page before.
    after: Option<u64>,
}

/// The holds, also those that have ended.
#[utoipa::path(
    get,
    path = "/holds",
    operation_id = "holds",
    tag = "Operator",
    params(HoldsPage),
    responses(
        (status = 200, description = "A page of holds", body = HoldList),
        (status = 400, description = "The query is malformed (hold)"),
        (status = 500, description = "The database is damaged (hold)"),
        (status = 503, description = "The database does not answer (hold)")
    )
)]
async fn list(
    State(log): State<Arc<Log>>,
    page: Result<Query<HoldsPage>, QueryRejection>,
) -> Result<Json<HoldList>, JsonProblem> {
    let Query(page) = page.map_err(|error| bad_request(error.to_string()))?;
    let holds = log.store.holds(page.after.map(LeafIndex::new), HOLDS_PAGE).await.map_err(store_problem)?;
    let mut views = Vec::with_capacity(holds.len());
    for hold in holds {
        views.push(view(&log, hold).await?);
    }
    Ok(Json(HoldList { holds: views }))
}

/// The number of the next hold or release statement about an entry and a case.
#[utoipa::path(
    get,
    path = "/holds/next",
    operation_id = "next_hold",
    tag = "Operator",
    params(HoldQuery),
    responses(
        (status = 200, description = "The number", body = NextHold),
        (status = 400, description = "The query, the entry ID or the case is malformed (hold)"),
        (status = 404, description = "The entry is not in this log (hold)"),
        (status = 500, description = "The database is damaged (hold)"),
        (status = 503, description = "The database does not answer (hold)")
    )
)]
async fn next(
    State(log): State<Arc<Log>>,
    request: Result<Query<HoldQuery>, QueryRejection>,
) -> Result<Json<NextHold>, JsonProblem> {
    let Query(request) = request.map_err(|error| bad_request(error.to_string()))?;
    let digest = named(&log, &request).await?;
    let number = effects::next_number(&*log.store, &digest, &request.case).await.map_err(store_problem)?;
    Ok(Json(NextHold { number }))
}

/// Hold an entry for a case, by a statement.
#[utoipa::path(
    post,
    path = "/holds",
    operation_id = "hold",
    tag = "Operator",
    request_body = OperatorRequest,
    responses(
        (status = 200, description = "The hold, with the entry ID of its statement", body = HoldView),
        (status = 400, description = "Not JSON, or the statement is not a hold or refused (hold)"),
        (status = 409, description = "The log halted, or the statement contradicts a registered one (hold)"),
        (status = 500, description = "The database is damaged (hold)"),
        (status = 503, description = "It is not known yet whether the log took the statement: ask again (hold)")
    )
)]
async fn begin(
    State(log): State<Arc<Log>>,
    request: Result<Json<OperatorRequest>, JsonRejection>,
) -> Result<Json<HoldView>, JsonProblem> {
    let (statement, held) = stated(request, "hold")?;
    let placed = statements::register(&log, &statement).await.map_err(refused)?;
    tracing::info!(entry = %held.entry, case = held.case, statement = placed.entry_id, "hold");
    let leaf = log.index_of(held.entry).await.map_err(store_problem)?;
    let before = leaf.and_then(|leaf| leaf.get().checked_sub(1)).map(LeafIndex::new);
    let holds = log.store.holds(before, 1).await.map_err(store_problem)?;
    let is_it = |hold: &Hold| Some(hold.entry) == leaf && hold.case == held.case && hold.released.is_none();
    match holds.into_iter().find(is_it) {
        Some(hold) => {
            let statement = Some(placed.entry_id);
            Ok(Json(HoldView { statement, ..view(&log, hold).await? }))
        }
        None => Err(problem(StatusCode::CONFLICT, "the hold has ended meanwhile".to_owned())),
    }
}

/// Release an entry that is held for a case, by a statement.
#[utoipa::path(
    delete,
    path = "/holds",
    operation_id = "release",
    tag = "Operator",
    request_body = OperatorRequest,
    responses(
        (status = 200, description = "The position of the statement", body = StatementPosition),
        (status = 400, description = "Not JSON, or the statement is not a release or refused (hold)"),
        (status = 409, description = "The log halted, or the statement contradicts a registered one (hold)"),
        (status = 500, description = "The database is damaged (hold)"),
        (status = 503, description = "It is not known yet whether the log took the statement: ask again (hold)")
    )
)]
async fn end(
    State(log): State<Arc<Log>>,
    request: Result<Json<OperatorRequest>, JsonRejection>,
) -> Result<Json<StatementPosition>, JsonProblem> {
    let (statement, held) = stated(request, "release")?;
    let placed = statements::register(&log, &statement).await.map_err(refused)?;
    tracing::info!(entry = %held.entry, case = held.case, statement = placed.entry_id, "hold released");
    Ok(Json(placed))
}

/// Parses the statement and its action; 400 unless the action is named `action`.
fn stated(
    request: Result<Json<OperatorRequest>, JsonRejection>,
    action: &str,
) -> Result<(SignedStatement, Held), JsonProblem> {
    let Json(request) = request.map_err(|error| problem(error.status(), error.body_text()))?;
    let statement = statements::parsed(&request.statement).map_err(refused)?;
    let stated = effects::action_of(&statement).filter(|stated| stated.name() == action);
    let held = stated.as_ref().and_then(|stated| stated.held()).cloned();
    let held = held.ok_or_else(|| bad_request(format!("the statement is not a {action}")))?;
    Ok((statement, held))
}

async fn named(log: &Log, request: &HoldQuery) -> Result<EntryDigest, JsonProblem> {
    if request.case.is_empty()
        || request.case.len() > CASE_BYTES
        || request.case.chars().any(char::is_control)
    {
        let why = format!("a case has a name of 1 to {CASE_BYTES} bytes without control characters");
        return Err(bad_request(why));
    }
    let digest: EntryDigest = request
        .entry_id
        .parse()
        .map_err(|_| bad_request("an entry ID is 64 lowercase hex digits".to_owned()))?;
    let leaf = log.index_of(digest).await.map_err(store_problem)?;
    match leaf {
        Some(_) => Ok(digest),
        None => Err(problem(StatusCode::NOT_FOUND, format!("{digest} is not in this log"))),
    }
}

async fn view(log: &Log, hold: Hold) -> Result<HoldView, JsonProblem> {
    let entry = log.store.entry(hold.entry).await.map_err(store_problem)?;
    Ok(HoldView {
        entry_id: entry.map(|entry| entry.digest.to_string()).unwrap_or_default(),
        index: hold.entry.get(),
        case: hold.case,
        since: rfc3339(hold.at),
        released: hold.released.and_then(rfc3339),
        statement: None,
    })
}

fn store_problem(error: StoreError) -> JsonProblem {
    let status = match error {
        StoreError::Refused(_) | StoreError::Frozen | StoreError::InUse(_) | StoreError::NoLog(_) => {
            StatusCode::CONFLICT
        }
        StoreError::Unavailable(_) | StoreError::Storage(..) => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    problem(status, error.to_string())
}

fn refused(OperatorError(status, detail): OperatorError) -> JsonProblem {
    problem(status, detail)
}

fn bad_request(detail: String) -> JsonProblem {
    problem(StatusCode::BAD_REQUEST, detail)
}

fn problem(status: StatusCode, detail: String) -> JsonProblem {
    JsonProblem::new(status, "hold", detail)
}
