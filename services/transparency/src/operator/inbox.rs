//! The inbox on the admin listener: lists accepted statements that are not in the log yet, and lets the operator refuse
//! them.

use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use merkle::EntryDigest;
use sequencer::Role;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{PendingKey, Progress, StoreError};

use crate::edge::problem;
use crate::limits::{INBOX_PAGE, INBOX_REASON_BYTES};
use crate::log::state::Log;
use crate::time::now;
use crate::time::rfc3339;

/// The routes of the inbox.
pub fn routes(log: Arc<Log>) -> Router {
    Router::new().route("/inbox", get(list)).route("/inbox/refuse", post(refuse)).with_state(log)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InboxPage {
    after: Option<u64>,
}

/// The body of `POST /inbox/refuse`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefuseRequest {
    entry_id: String,
    reason: String,
}

/// An inbox item.
#[derive(Debug, Serialize)]
struct InboxItem {
    number: u64,
    entry_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u64>,
    /// `"waiting"`, or `"delayed"` in the leading process after a failed attempt.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

/// A failed request, as problem details.
struct InboxError {
    status: StatusCode,
    code: &'static str,
    detail: String,
}

impl IntoResponse for InboxError {
    fn into_response(self) -> Response {
        let Self { status, code, detail } = self;
        let title = status.canonical_reason().unwrap_or("Request Failed");
        problem::on_admin(status, title, code, &detail)
    }
}

impl From<StoreError> for InboxError {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self { status, code: "inbox", detail: error.to_string() }
    }
}

async fn list(
    State(log): State<Arc<Log>>,
    page: Result<Query<InboxPage>, QueryRejection>,
) -> Result<Response, InboxError> {
    let Query(page) = page.map_err(|error| bad_request(error.to_string()))?;
    let keys = log.store.pending_keys(page.after, INBOX_PAGE).await?;
    let leads = matches!(log.sequencer.status().borrow().role, Role::Leading { .. });
    let items: Vec<InboxItem> = keys.into_iter().map(|key| item(&log, key)).collect();
    Ok(Json(json!({ "leads": leads, "items": items })).into_response())
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

/// Refuses a pending statement for good. A statement that the leader is sequencing at this moment may still be
/// registered; the log then takes precedence over the refusal.
async fn refuse(
    State(log): State<Arc<Log>>,
    request: Result<Json<RefuseRequest>, JsonRejection>,
) -> Result<Response, InboxError> {
    let Json(RefuseRequest { entry_id, reason }) = request.map_err(|error| bad_request(error.body_text()))?;
    let digest: EntryDigest =
        entry_id.parse().map_err(|_| bad_request("an entry ID is 64 lowercase hex digits".to_owned()))?;
    if reason.is_empty() || reason.len() > INBOX_REASON_BYTES || reason.chars().any(char::is_control) {
        let limit = INBOX_REASON_BYTES;
        return Err(bad_request(format!("a reason has 1 to {limit} bytes without control characters")));
    }
    pending(&log, &digest).await?;
    let outcome = format!("refused by the operator: {reason}");
    log.store.refuse(&digest, &outcome).await?;
    if let Some(index) = log.index_of(digest).await? {
        return Err(decided(format!("{digest} was registered meanwhile, as leaf {index}")));
    }
    match log.store.progress(&digest).await? {
        Some(Progress::Failed(why)) if why == outcome => {
            tracing::warn!(entry = %digest, reason, "the operator refused a statement from the inbox");
            log.metrics.inbox.refused.inc();
            Ok(Json(json!({ "entry_id": entry_id, "outcome": outcome })).into_response())
        }
        _ => Err(decided(format!("{digest} got another outcome meanwhile"))),
    }
}

/// Fails unless the statement is pending: 404 if it is unknown, 409 if it is decided.
async fn pending(log: &Log, digest: &EntryDigest) -> Result<(), InboxError> {
    if let Some(index) = log.index_of(*digest).await? {
        return Err(decided(format!("{digest} is in the log, as leaf {index}")));
    }
    match log.store.progress(digest).await? {
        Some(Progress::Pending) => Ok(()),
        Some(Progress::Failed(why)) => Err(decided(format!("{digest} is refused already: {why}"))),
        Some(Progress::Registered(index)) => Err(decided(format!("{digest} is in the log, as leaf {index}"))),
        None => Err(InboxError {
            status: StatusCode::NOT_FOUND,
            code: "not-in-inbox",
            detail: format!("no accepted statement {digest} is pending"),
        }),
    }
}

fn bad_request(detail: String) -> InboxError {
    InboxError { status: StatusCode::BAD_REQUEST, code: "inbox", detail }
}

fn decided(detail: String) -> InboxError {
    InboxError { status: StatusCode::CONFLICT, code: "inbox-decided", detail }
}
