//! `POST /v1/entries/batch`: many statements in one request, each registered or refused independently.
//!
//! All are decided at once, and submitted to the sequencer in their order without waiting for each other. So they share
//! its batches, but nothing is atomic: the response has one result for each part. After a lost connection a client
//! submits the batch again, which is safe.

use axum::extract::{Extension, State};
use axum::{Json, response::IntoResponse, response::Response};
use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use http::StatusCode;
use http::header::CACHE_CONTROL;
use merkle::EntryDigest;
use serde::Serialize;
use tokio::task::JoinSet;
use utoipa::ToSchema;

use super::Binary;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::edge::rate_limit::RequestCharge;
use crate::edge::request_parsing::SubmittedBatch;
use crate::log::registration_outcome::Registered;
use crate::log::turns::Turn;
use crate::routes::app::App;

/// One answer for each part.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchResults {
    /// In the order of the parts.
    results: Vec<BatchResult>,
}

/// The result for one part: the answer that `POST /entries` would have given.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchResult {
    /// 201, 202, or the status of the problem.
    status: u16,
    /// SHA-256 of the statement, hex; absent if the part is not a statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_id: Option<String>,
    /// Where the receipt is, or will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// The leaf, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf_index: Option<u64>,
    /// The receipt, in base64url without padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
    /// Seconds after which it is worth asking again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// Why it was not registered (RFC 9457).
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<serde_json::Value>,
}

/// Register up to 256 Signed Statements.
///
/// Each part is registered or refused by itself, and counts as one registration. A body that cannot be taken apart is
/// refused whole, and nothing of it is registered. The leaves are in the order of the parts, if the process that answers
/// leads the log and none of its policies changes meanwhile.
#[utoipa::path(
    post,
    path = "/v1/entries/batch",
    tag = "Log",
    request_body(
        content((Binary = "multipart/mixed")),
        description = "One statement in each part, as application/cose or application/scitt-statement+cose."
    ),
    responses(
        (status = 200, description = "One result for each part, in order", body = BatchResults),
        (status = 400, description = "Not multipart/mixed as it should be, or more than 256 parts"),
        (status = 413, description = "The batch is too large"),
        (status = 415, description = "Not multipart/mixed, or a content coding")
    )
)]
pub async fn register_batch(
    State(app): State<App>,
    Extension(charge): Extension<RequestCharge>,
    Extension(caller): Extension<AuthenticatedCaller>,
    batch: SubmittedBatch,
) -> Response {
    let mut running = JoinSet::new();
    for ((place, statement), turn) in batch.statements.iter().cloned().enumerate().zip(Turn::each()) {
        let (app, charge, caller) = (app.clone(), charge.clone(), caller.clone());
        // The middleware charged the request itself, which pays for the first statement.
        let charged = if place == 0 { Ok(()) } else { charge.charge() };
        running.spawn(async move {
            let result = match charged {
                Ok(()) => one(&app, &caller, statement, turn).await,
                Err(over) => BatchResult::refused(&app, None, &over.into()),
            };
            if result.status >= 500 {
                charge.refund();
            }
            (place, result)
        });
    }
    let mut results: Vec<BatchResult> =
        batch.statements.iter().map(|_| BatchResult::refused(&app, None, &Problem::internal())).collect();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((place, result)) => results[place] = result,
            Err(error) => tracing::error!(%error, "a registration in a batch failed"),
        }
    }
    ([(CACHE_CONTROL, "no-store")], Json(BatchResults { results })).into_response()
}

async fn one(
    app: &App,
    caller: &AuthenticatedCaller,
    statement: Result<Bytes, Problem>,
    turn: Turn,
) -> BatchResult {
    let statement = match statement.and_then(|bytes| super::entries::parse(app, bytes)) {
        Ok(statement) => statement,
        Err(problem) => return BatchResult::refused(app, None, &problem),
    };
    let digest = statement.digest();
    if let Err(problem) = super::entries::must_cover(caller, &statement) {
        return BatchResult::refused(app, Some(digest), &problem);
    }
    match app.log.register_in_turn(&statement, turn).await {
        Ok(registered) => BatchResult::taken(app, digest, registered),
        Err(error) => BatchResult::refused(app, Some(digest), &error.into()),
    }
}

impl BatchResult {
    fn taken(app: &App, digest: EntryDigest, registered: Registered) -> Self {
        let (status, leaf_index, receipt, retry_after) = match registered {
            Registered::Receipt { index, receipt } => {
                (StatusCode::CREATED, Some(index.get()), Some(BASE64URL_NOPAD.encode(&receipt)), None)
            }
            Registered::Later => {
                (StatusCode::ACCEPTED, None, None, Some(app.edge.limits.load().retry_after.max(1).into()))
            }
        };
        Self {
            status: status.as_u16(),
            entry_id: Some(digest.to_string()),
            location: Some(app.log.location(digest)),
            leaf_index,
            receipt,
            retry_after,
            problem: None,
        }
    }

    fn refused(app: &App, digest: Option<EntryDigest>, problem: &Problem) -> Self {
        Self {
            status: problem.status.as_u16(),
            entry_id: digest.map(|digest| digest.to_string()),
            location: None,
            leaf_index: None,
            receipt: None,
            retry_after: problem.retry_after,
            problem: Some(problem.members(&app.edge.error_documentation)),
        }
    }
}
