//! The inbox on the admin listener: lists accepted statements that are not in the log yet, and lets the operator refuse
//! them.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use http::StatusCode;
use merkle::EntryDigest;
use sequencer::Role;
use serde::{Deserialize, Serialize};
use serving::problem::JsonProblem;
use store::{PendingKey, Progress, StoreError};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::limits::{INBOX_PAGE, INBOX_REASON_BYTES};
use crate::log::state::Log;
use crate::time::now;
use crate::time::rfc3339;

/// The routes of the inbox, with their description.
pub fn described() -> OpenApiRouter<Arc<Log>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(refuse))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct InboxPage {
    /// The number of the last item of the page before.
    after: Option<u64>,
}

/// The body of `POST /inbox/refuse`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RefuseRequest {
    /// The statement's entry ID.
    entry_id: String,
    /// Why the operator refuses it; the issuer gets to read this.
    reason: String,
}

/// A statement that the operator refused.
#[derive(Debug, Serialize, ToSchema)]
struct RefusedItem {
    /// The statement's entry ID.
    entry_id: String,
    /// The outcome that its issuer gets to read.
    outcome: String,
}

/// A page of the inbox.
#[derive(Debug, Serialize, ToSchema)]
struct InboxList {
    /// `true` if this process leads: only the leader knows of failed attempts.
    leads: bool,
    /// The items, oldest first.
    items: Vec<InboxItem>,
}

/// An inbox item.
#[derive(Debug, Serialize, ToSchema)]
struct InboxItem {
    /// The number of the item; the last one of a page is `after` of the next.
    number: u64,
    /// The statement's entry ID.
    entry_id: String,
    /// The statement's issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// The size of the submission.
    bytes: u64,
    /// When the statement was accepted (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<String>,
    /// Seconds since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u64>,
    /// `"waiting"`, or `"delayed"` in the leading process after a failed attempt.
    state: &'static str,
    /// Failed attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// Seconds until the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_seconds: Option<u64>,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

/// Accepted statements that are not in the log yet.
#[utoipa::path(
    get,
    path = "/inbox",
    operation_id = "inbox",
    tag = "Operator",
    params(InboxPage),
    responses(
        (status = 200, description = "A page of the inbox", body = InboxList),
        (status = 400, description = "The query is malformed (inbox)"),
        (status = 500, description = "The database is damaged (inbox)"),
        (status = 503, description = "The database does not answer (inbox)")
    )
)]
async fn list(
    State(log): State<Arc<Log>>,
    page: Result<Query<InboxPage>, QueryRejection>,
) -> Result<Json<InboxList>, JsonProblem> {
    let Query(page) = page.map_err(|error| bad_request(error.to_string()))?;
    let keys = log.store.pending_keys(page.after, INBOX_PAGE).await.map_err(store_problem)?;
    let leads = matches!(log.sequencer.status().borrow().role, Role::Leading { .. });
    let items = keys.into_iter().map(|key| item(&log, key)).collect();
    Ok(Json(InboxList { leads, items }))
}

fn item(log: &Log, key: PendingKey) -> InboxItem {
    let delay = log.sequencer.delay(&key.digest);
    InboxItem {
        number: key.number,
        entry_id: key.digest.to_string(),
        issuer: (!key.issuer.is_empty()).then_some(key.issuer),
        bytes: key.bytes,
        accepted: (key.at > 0).then(|| rfc3339(key.at)).flatten(),
        age_seconds: (key.at > 0).then(|| now().saturating_sub(key.at)),
        state: if delay.is_some() { "delayed" } else { "waiting" },
        attempts: delay.as_ref().map(|delay| delay.attempts),
        next_attempt_seconds: delay.as_ref().map(|delay| delay.next.as_secs()),
        because: delay.map(|delay| delay.why),
    }
}

/// Refuse a pending statement for good.
///
/// A statement that the leader is sequencing at this moment may still be registered; the log then takes precedence over the
/// refusal.
#[utoipa::path(
    post,
    path = "/inbox/refuse",
    operation_id = "refuse",
    tag = "Operator",
    request_body = RefuseRequest,
    responses(
        (status = 200, description = "The statement is refused", body = RefusedItem),
        (status = 400, description = "The request, the entry ID or the reason is malformed (inbox)"),
        (status = 404, description = "No such statement is pending (not-in-inbox)"),
        (status = 409, description = "The statement has an outcome already (inbox-decided)"),
        (status = 500, description = "The database is damaged (inbox)"),
        (status = 503, description = "The database does not answer (inbox)")
    )
)]
async fn refuse(
    State(log): State<Arc<Log>>,
    request: Result<Json<RefuseRequest>, JsonRejection>,
) -> Result<Json<RefusedItem>, JsonProblem> {
    let Json(RefuseRequest { entry_id, reason }) = request.map_err(|error| bad_request(error.body_text()))?;
    let digest: EntryDigest =
        entry_id.parse().map_err(|_| bad_request("an entry ID is 64 lowercase hex digits".to_owned()))?;
    if reason.is_empty() || reason.len() > INBOX_REASON_BYTES || reason.chars().any(char::is_control) {
        let limit = INBOX_REASON_BYTES;
        return Err(bad_request(format!("a reason has 1 to {limit} bytes without control characters")));
    }
    pending(&log, &digest).await?;
    let outcome = format!("refused by the operator: {reason}");
    log.store.refuse(&digest, &outcome).await.map_err(store_problem)?;
    if let Some(index) = log.index_of(digest).await.map_err(store_problem)? {
        return Err(decided(format!("{digest} was registered meanwhile, as leaf {index}")));
    }
    match log.store.progress(&digest).await.map_err(store_problem)? {
        Some(Progress::Failed(why)) if why == outcome => {
            tracing::warn!(entry = %digest, reason, "the operator refused a statement from the inbox");
            log.metrics.inbox.refused.inc();
            Ok(Json(RefusedItem { entry_id, outcome }))
        }
        _ => Err(decided(format!("{digest} got another outcome meanwhile"))),
    }
}

/// Fails unless the statement is pending: 404 if it is unknown, 409 if it is decided.
async fn pending(log: &Log, digest: &EntryDigest) -> Result<(), JsonProblem> {
    if let Some(index) = log.index_of(*digest).await.map_err(store_problem)? {
        return Err(decided(format!("{digest} is in the log, as leaf {index}")));
    }
    match log.store.progress(digest).await.map_err(store_problem)? {
        Some(Progress::Pending) => Ok(()),
        Some(Progress::Failed(why)) => Err(decided(format!("{digest} is refused already: {why}"))),
        Some(Progress::Registered(index)) => Err(decided(format!("{digest} is in the log, as leaf {index}"))),
        None => {
            let detail = format!("no accepted statement {digest} is pending");
            Err(JsonProblem::new(StatusCode::NOT_FOUND, "not-in-inbox", detail))
        }
    }
}

fn store_problem(error: StoreError) -> JsonProblem {
    let status = match error {
        StoreError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    JsonProblem::new(status, "inbox", error.to_string())
}

fn bad_request(detail: String) -> JsonProblem {
    JsonProblem::new(StatusCode::BAD_REQUEST, "inbox", detail)
}

fn decided(detail: String) -> JsonProblem {
    JsonProblem::new(StatusCode::CONFLICT, "inbox-decided", detail)
}
