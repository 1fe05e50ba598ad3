//! The registration policy in force, and the limits a client can run into.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde::Serialize;
use utoipa::ToSchema;

use super::Binary;
use crate::app::App;
use crate::limits::{BATCH_STATEMENTS, HEADER_DEPTH, PAYLOAD_DEPTH};
use crate::log::RegisterError;
use crate::media;
use crate::problem::Problem;

/// The registration policy in force.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyView {
    /// The leaf that holds it.
    index: u64,
    /// The ID of that entry.
    entry_id: String,
    /// SHA-256 of the policy's canonical JSON, hex.
    digest: String,
    /// How many policies came before it.
    revision: u64,
    /// The policy itself: the payload of the statement.
    #[schema(value_type = Object)]
    policy: serde_json::Value,
}

/// The registration policy in force, as JSON; as the signed statement where COSE or CBOR is asked for.
#[utoipa::path(
    get,
    path = "/v1/policy",
    tag = "Log",
    responses(
        (status = 200, description = "The policy, with the leaf that holds it",
         content((PolicyView = "application/json"), (Binary = "application/cose"))),
        (status = 503, description = "The log has no policy yet")
    )
)]
pub async fn policy(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let current = app.log.policies.current().ok_or(RegisterError::NoPolicy)?;
    let cached = (CACHE_CONTROL, "no-cache");
    for statement in [media::COSE, media::STATEMENT, media::CBOR] {
        if media::prefers(&headers, statement, &[media::JSON]) {
            return Ok(
                ([(CONTENT_TYPE, statement), cached], current.statement.bytes().clone()).into_response()
            );
        }
    }
    let policy = current.in_force.policy();
    let view = PolicyView {
        index: current.in_force.leaf().get(),
        entry_id: current.entry.to_string(),
        digest: policy.digest().to_string(),
        revision: policy.contents().revision,
        policy: serde_json::from_slice(policy.payload()).unwrap_or_default(),
    };
    Ok(([cached], Json(view)).into_response())
}

/// What a client can run into.
#[derive(Debug, Serialize, ToSchema)]
pub struct LimitsView {
    /// Bytes of one statement, and of one detached payload.
    statement_bytes: usize,
    /// Bytes of one batch.
    batch_bytes: usize,
    /// Statements of one batch.
    batch_statements: usize,
    /// Header fields of one request.
    headers: usize,
    /// Bytes of a request line and its headers.
    head_bytes: usize,
    /// Seconds to send a request head.
    header_seconds: f32,
    /// Seconds to send a request body.
    body_seconds: f32,
    /// Nesting of statement headers.
    header_depth: usize,
    /// Nesting of payloads that are read.
    payload_depth: usize,
    /// Entries on one page.
    page: usize,
    /// Registrations, per client.
    writes: RateView,
    /// Other requests, per client.
    reads: RateView,
    /// Registrations, per issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<RateView>,
    /// Seconds after which a registration is answered 202.
    answer_within_seconds: f32,
}

/// So many requests in a period.
#[derive(Debug, Serialize, ToSchema)]
pub struct RateView {
    requests: u32,
    per_seconds: f32,
    burst: u32,
}

impl From<crate::limits::Rate> for RateView {
    fn from(rate: crate::limits::Rate) -> Self {
        Self {
            requests: rate.requests.get(),
            per_seconds: rate.period.as_secs_f32(),
            burst: rate.burst.get(),
        }
    }
}

/// The limits in force.
#[utoipa::path(get, path = "/v1/limits", tag = "Service", responses((status = 200, body = LimitsView)))]
pub async fn limits(State(app): State<App>) -> Json<LimitsView> {
    let limits = app.house.limits.load_full();
    Json(LimitsView {
        statement_bytes: limits.statement_bytes,
        batch_bytes: limits.batch_bytes,
        batch_statements: BATCH_STATEMENTS,
        headers: limits.headers,
        head_bytes: limits.head_bytes,
        header_seconds: limits.header_time.as_secs_f32(),
        body_seconds: limits.body_time.as_secs_f32(),
        header_depth: HEADER_DEPTH,
        payload_depth: PAYLOAD_DEPTH,
        page: limits.page,
        writes: limits.writes.into(),
        reads: limits.reads.into(),
        issuer: limits.issuer.map(RateView::from),
        answer_within_seconds: limits.receipt_wait.as_secs_f32(),
    })
}
