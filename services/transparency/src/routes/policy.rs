//! The log's registration policies, and the limits for clients.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64URL_NOPAD;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::Binary;
use crate::edge::media;
use crate::edge::problem::Problem;
use crate::limits::{BATCH_STATEMENTS, HEADER_DEPTH, PAYLOAD_DEPTH, POLICY_HISTORY};
use crate::log::policies::PolicyEntry;
use crate::log::policies::PolicyRevision;
use crate::log::registration_outcome::RegisterError;
use crate::routes::app::App;
use crate::time::rfc3339;

/// A policy that the log has or had.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyEntryView {
    /// The leaf that holds it.
    pub index: u64,
    /// The ID of that entry.
    pub entry_id: String,
    /// SHA-256 of the policy's canonical JSON, hex.
    pub digest: String,
    /// The number of earlier policies.
    pub revision: u64,
    /// When it was committed. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The size of the log at which it came into force: it decides about the leaves from there on, until the next.
    pub in_force_from: u64,
}

impl From<&PolicyRevision> for PolicyEntryView {
    fn from(past: &PolicyRevision) -> Self {
        Self {
            index: past.leaf.get(),
            entry_id: past.entry.to_string(),
            digest: past.digest.to_string(),
            revision: past.revision,
            at: past.at.and_then(rfc3339),
            in_force_from: past.in_force_from().get(),
        }
    }
}

/// The registration policy in force, and those before it.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyView {
    #[serde(flatten)]
    entry: PolicyEntryView,
    /// The policy itself: the payload of the statement.
    #[schema(value_type = Object)]
    policy: serde_json::Value,
    /// Every policy of the log, newest first, this one among them.
    history: Vec<PolicyEntryView>,
}

/// A registration policy of the log, in force or not.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyRevisionView {
    #[serde(flatten)]
    entry: PolicyEntryView,
    /// The policy itself: the payload of the statement.
    #[schema(value_type = Object)]
    policy: serde_json::Value,
    /// The signed statement, base64url.
    statement: String,
}

/// The registration policy in force, as JSON with its history; as the signed statement where COSE or CBOR is asked for.
#[utoipa::path(
    get,
    path = "/v1/policy",
    tag = "Log",
    responses(
        (status = 200, description = "The policy, with the leaf that holds it",
         content((PolicyView = "application/json"), (Binary = "application/cose"), (Binary = "application/scitt-statement+cose"),
                 (Binary = "application/cbor"))),
        (status = 503, description = "The log has no policy yet")
    )
)]
pub async fn policy(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let current = app.log.policies.current().ok_or(RegisterError::NoPolicy)?;
    let cached = (CACHE_CONTROL, "no-cache");
    if let Some(media) = as_statement(&headers) {
        return Ok(([(CONTENT_TYPE, media), cached, media::NEGOTIATED], current.statement.bytes().clone())
            .into_response());
    }
    let history = app.log.policies.history().await?;
    let here = history.iter().rev().find(|past| past.leaf == current.in_force.leaf());
    let view = PolicyView {
        entry: here.ok_or(RegisterError::NoPolicy)?.into(),
        policy: document(&current),
        history: history.iter().rev().take(POLICY_HISTORY).map(PolicyEntryView::from).collect(),
    };
    Ok(([cached, media::NEGOTIATED], Json(view)).into_response())
}

/// A registration policy by its revision, as JSON with its statement; as the statement alone where COSE or CBOR is asked for.
#[utoipa::path(
    get,
    path = "/v1/policy/{revision}",
    tag = "Log",
    params(("revision" = u64, Path, description = "The number of earlier policies")),
    responses(
        (status = 200, description = "The policy, with the leaf that holds it",
         content((PolicyRevisionView = "application/json"), (Binary = "application/cose"), (Binary = "application/scitt-statement+cose"),
                 (Binary = "application/cbor"))),
        (status = 400, description = "Invalid locator"),
        (status = 404, description = "Not Found")
    )
)]
pub async fn revision(
    State(app): State<App>,
    revision: Result<Path<u64>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path(revision) = revision.map_err(|_| malformed_revision())?;
    let history = app.log.policies.history().await?;
    let past = history.iter().find(|past| past.revision == revision).ok_or_else(|| unknown(revision))?;
    let policy = app.log.policies.at(past.leaf).await?;
    let cached = (CACHE_CONTROL, "public, max-age=3600");
    if let Some(media) = as_statement(&headers) {
        return Ok(([(CONTENT_TYPE, media), cached, media::NEGOTIATED], policy.statement.bytes().clone())
            .into_response());
    }
    let view = PolicyRevisionView {
        entry: past.into(),
        policy: document(&policy),
        statement: BASE64URL_NOPAD.encode(policy.statement.bytes()),
    };
    Ok(([cached, media::NEGOTIATED], Json(view)).into_response())
}

/// 400: what stands in place of a revision is none.
pub fn malformed_revision() -> Problem {
    let detail = "Operation locator is not in a valid form: a revision is a number";
    Problem::new(StatusCode::BAD_REQUEST, "locator-invalid", "Invalid locator", detail)
}

/// 404: the log has no policy of this revision.
pub fn unknown(revision: u64) -> Problem {
    let detail = format!("This log has no registration policy of revision {revision}");
    Problem::new(StatusCode::NOT_FOUND, "policy-unknown", "Not Found", detail)
}

/// The media type of a statement that the client prefers to JSON; `None` if it prefers JSON.
fn as_statement(headers: &HeaderMap) -> Option<&'static str> {
    [media::COSE, media::STATEMENT, media::CBOR]
        .into_iter()
        .find(|statement| media::prefers(headers, statement, &[media::JSON]))
}

/// The document of a policy.
pub fn document(policy: &PolicyEntry) -> serde_json::Value {
    serde_json::from_slice(policy.in_force.policy().payload()).unwrap_or_default()
}

/// The limits that concern clients.
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
    /// Registrations, per issuer to which the operator gave no rate of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<RateView>,
    /// Seconds after which a registration is answered 202.
    answer_within_seconds: f32,
    /// Streams of entries open at one time.
    entry_streams: usize,
    /// Those of one client.
    entry_streams_per_client: usize,
    /// Seconds after which a reader that reads nothing is disconnected.
    entry_stream_seconds: f32,
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
#[utoipa::path(get, path = "/v1/limits", tag = "Service", responses((status = 200, description = "The limits in force", body = LimitsView)))]
pub async fn limits(State(app): State<App>) -> Json<LimitsView> {
    let limits = app.edge.limits.load_full();
    Json(LimitsView {
        statement_bytes: app.edge.statement_bytes(),
        batch_bytes: app.edge.batch_bytes(),
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
        entry_streams: limits.tail.places,
        entry_streams_per_client: limits.tail.places_per_client,
        entry_stream_seconds: limits.tail.patience.as_secs_f32(),
    })
}
