//! `POST /v1/policy/evaluate`: a dry run of a registration. A refusal is a 200 response, not an error.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::CACHE_CONTROL;
use merkle::LeafIndex;
use registration::{TimeWindow, Violation};
use scitt::SignedStatement;
use serde::Serialize;
use utoipa::ToSchema;

use super::Binary;
use super::entries::{DetachedForm, must_cover};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::{Problem, shortened};
use crate::edge::request_parsing::SubmittedStatement;
use crate::log::dry_run::DryRun;
use crate::routes::app::App;
use crate::run_blocking::run_blocking;
use crate::time::rfc3339;

/// The decision about a statement that is not registered.
#[derive(Debug, Serialize, ToSchema)]
pub struct EvaluationView {
    /// Whether registering it now would be answered with a receipt.
    would_admit: bool,
    /// The entry ID, or the one that it would have.
    entry_id: String,
    /// The leaf that holds it already. Then nothing else is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    registered_at: Option<u64>,
    /// The policy that decided.
    policy: DecidingPolicy,
    /// The rule that admits.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The rule that refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<ViolationView>,
    /// The guards that it claims and that entries of the log hold.
    taken: Vec<TakenView>,
    /// When it may enter; an absent end is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<ValidView>,
    /// The facts that were read from it.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<serde_json::Value>,
}

/// The policy that decided.
#[derive(Debug, Serialize, ToSchema)]
pub struct DecidingPolicy {
    /// The leaf that holds it.
    index: u64,
    /// The ID of that entry.
    entry_id: String,
    /// SHA-256 of its canonical JSON, hex.
    digest: String,
    /// The number of earlier policies.
    revision: u64,
}

/// A rule that a statement breaks.
#[derive(Debug, Serialize, ToSchema)]
pub struct ViolationView {
    /// The rule.
    rule: String,
    /// Where: in the protected header, or a JSON pointer into the payload.
    place: String,
    /// The finding, for people.
    detail: String,
}

/// Something that only one entry may claim.
#[derive(Debug, Serialize, ToSchema)]
pub struct TakenView {
    /// The rule.
    rule: String,
    /// The leaf that was first.
    by: u64,
}

/// When a statement may enter.
#[derive(Debug, Serialize, ToSchema)]
pub struct ValidView {
    /// The first second. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    /// The last second. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<String>,
}

/// Decides about a Signed Statement without registering it.
///
/// Costs what a registration costs; issuers' quotas are not charged.
#[utoipa::path(
    post,
    path = "/v1/policy/evaluate",
    tag = "Log",
    request_body(
        content((Binary = "application/cose"), (Binary = "application/scitt-statement+cose"),
                (DetachedForm = "multipart/form-data")),
        description = "As for POST /entries."
    ),
    responses(
        (status = 200, description = "The answer, also where it is a refusal", body = EvaluationView),
        (status = 403, description = "Log Frozen: the statement is not registered, and no more entries are added to this log; or the token's role or scope does not suffice"),
        (status = 413, description = "The statement is too large"),
        (status = 415, description = "Not a type that statements come in, or a content coding"),
        (status = 503, description = "The policy was not evaluated in time, or the log does not register now or does not answer; Retry-After gives the time to wait")
    )
)]
pub async fn evaluate(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    handed_in: SubmittedStatement,
) -> Result<Response, Problem> {
    let bytes = handed_in.statement.clone();
    let statement = run_blocking(bytes.len(), || SignedStatement::parse(bytes))?;
    must_cover(&caller, &statement)?;
    let run = app.log.dry_run(&statement, handed_in.payload.as_ref()).await?;
    let view = EvaluationView::of(statement.digest().to_string(), &run);
    Ok(([(CACHE_CONTROL, "no-store")], Json(view)).into_response())
}

impl EvaluationView {
    fn of(entry_id: String, run: &DryRun) -> Self {
        let policy = run.policy.in_force.policy();
        let permitted = run.permitted.as_ref();
        Self {
            would_admit: run.would_admit(),
            entry_id,
            registered_at: run.registered_at.map(LeafIndex::get),
            policy: DecidingPolicy {
                index: run.policy.in_force.leaf().get(),
                entry_id: run.policy.entry.to_string(),
                digest: policy.digest().to_string(),
                revision: policy.contents().revision,
            },
            rule: permitted.map(|permitted| permitted.rule.clone()),
            violation: run.violation.as_ref().map(ViolationView::of),
            taken: run
                .taken
                .iter()
                .map(|(guard, leaf)| TakenView { rule: guard.rule().to_string(), by: leaf.get() })
                .collect(),
            valid: permitted.map(|permitted| ValidView::of(permitted.valid)),
            facts: permitted.map(|permitted| permitted.facts.clone().into()),
        }
    }
}

impl ViolationView {
    fn of(violation: &Violation) -> Self {
        Self {
            rule: violation.rule.to_string(),
            place: shortened(&violation.place.to_string()),
            detail: violation.detail.clone(),
        }
    }
}

impl ValidView {
    fn of(valid: TimeWindow) -> Self {
        Self { not_before: valid.not_before.and_then(rfc3339), not_after: valid.not_after.and_then(rfc3339) }
    }
}
