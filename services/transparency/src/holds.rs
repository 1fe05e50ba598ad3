//! Legal holds, on the admin listener: an entry that a case needs is not erased until the case is over.
//!
//! A hold is the operator's word and not a statement: it changes what is kept, never what is admitted. It stands with the
//! database, says since when, and outlives its end as a row.

use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use merkle::{EntryDigest, LeafIndex};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::custody::CASE_BYTES;
use store::{Hold, StoreError};

use crate::limits::HOLDS_PAGE;
use crate::log::Log;
use crate::problem;
use crate::routes::listing::rfc3339;
use crate::watch::now;

/// The routes of holds.
pub fn routes(log: Arc<Log>) -> Router {
    Router::new().route("/holds", get(list).post(begin).delete(end)).with_state(log)
}

/// A hold to begin or to end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    entry_id: String,
    case: String,
}

/// A hold.
#[derive(Debug, Serialize)]
struct View {
    entry_id: String,
    index: u64,
    case: String,
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<u64>,
}

/// Why nothing was done, as problem details.
struct Told(StatusCode, String);

impl IntoResponse for Told {
    fn into_response(self) -> Response {
        let Told(status, detail) = self;
        let title = status.canonical_reason().unwrap_or("Request Failed");
        problem::on_admin(status, title, "hold", &detail)
    }
}

async fn list(
    State(log): State<Arc<Log>>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Response, Told> {
    let Query(page) = page.map_err(|error| Told(StatusCode::BAD_REQUEST, error.to_string()))?;
    let holds = log.store.holds(page.after.map(LeafIndex::new), HOLDS_PAGE).await.map_err(told)?;
    let mut views = Vec::with_capacity(holds.len());
    for hold in holds {
        views.push(view(&log, hold).await?);
    }
    Ok(Json(json!({ "holds": views })).into_response())
}

async fn begin(
    State(log): State<Arc<Log>>,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<Response, Told> {
    let (digest, leaf, case) = named(&log, asked).await?;
    log.store.hold(leaf, &case, now()).await.map_err(told)?;
    tracing::info!(entry = %digest, case, "hold");
    let holds = log.store.holds(leaf.get().checked_sub(1).map(LeafIndex::new), 1).await.map_err(told)?;
    let hold =
        holds.into_iter().find(|hold| hold.entry == leaf && hold.case == case && hold.released.is_none());
    match hold {
        Some(hold) => Ok(Json(view(&log, hold).await?).into_response()),
        None => Err(Told(StatusCode::CONFLICT, "the hold has ended meanwhile".to_owned())),
    }
}

async fn end(
    State(log): State<Arc<Log>>,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<Response, Told> {
    let (digest, leaf, case) = named(&log, asked).await?;
    match log.store.release(leaf, &case, now()).await.map_err(told)? {
        true => {
            tracing::info!(entry = %digest, case, "hold released");
            log.erasing.look();
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        false => Err(Told(StatusCode::NOT_FOUND, format!("no case of that name holds {digest}"))),
    }
}

async fn named(
    log: &Log,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<(EntryDigest, LeafIndex, String), Told> {
    let Json(asked) = asked.map_err(|error| Told(error.status(), error.body_text()))?;
    if asked.case.is_empty() || asked.case.len() > CASE_BYTES || asked.case.chars().any(char::is_control) {
        let why = format!("a case has a name of 1 to {CASE_BYTES} bytes without control characters");
        return Err(Told(StatusCode::BAD_REQUEST, why));
    }
    let digest: EntryDigest = asked
        .entry_id
        .parse()
        .map_err(|_| Told(StatusCode::BAD_REQUEST, "an entry ID is 64 lowercase hex digits".to_owned()))?;
    let leaf = log.index_of(digest).await.map_err(told)?;
    let leaf = leaf.ok_or_else(|| Told(StatusCode::NOT_FOUND, format!("{digest} is not in this log")))?;
    Ok((digest, leaf, asked.case))
}

async fn view(log: &Log, hold: Hold) -> Result<View, Told> {
    let entry = log.store.entry(hold.entry).await.map_err(told)?;
    Ok(View {
        entry_id: entry.map(|entry| entry.digest.to_string()).unwrap_or_default(),
        index: hold.entry.get(),
        case: hold.case,
        since: rfc3339(hold.at),
        released: hold.released.and_then(rfc3339),
    })
}

fn told(error: StoreError) -> Told {
    let status = match error {
        StoreError::Refused(_) | StoreError::Frozen | StoreError::InUse(_) | StoreError::NoLog(_) => {
            StatusCode::CONFLICT
        }
        StoreError::Unavailable(_) | StoreError::Storage(..) => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Told(status, error.to_string())
}
