//! Payloads of statements: attached, or detached and kept.
//!
//! A detached payload is not covered by the leaf hash: a client checks the statement's signature over it, as the log
//! did once.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use registration::COLLATERAL_PAYLOAD;
use scitt::SignedStatement;
use store::Entry;

use super::bodies::must_be_open;
use super::statements::{CACHED, erased, stored_entry};
use super::{Binary, EntryId};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::routes::app::App;

/// The payload of a statement: attached, or stored with it.
///
/// Always served as bytes: its content type is in the statement, under the issuer's signature.
#[utoipa::path(
    get,
    path = "/v1/entries/{entry_id}/payload",
    tag = "Log",
    params(("entry_id" = String, Path, description = "64 lowercase hex digits")),
    responses(
        (status = 200, description = "The signed payload; of a hash envelope, the hash", body = Binary, content_type = "application/octet-stream"),
        (status = 400, description = "Invalid locator"),
        (status = 401, description = "The body is closed, and no token was shown; or the token is not known, or has expired"),
        (status = 403, description = "The body is closed to this token"),
        (status = 404, description = "Not Found, or the payload was not stored: the problem names the policy; with Retry-After, the statement is accepted and waits for its place in the log", headers(("Retry-After" = u32))),
        (status = 410, description = "It was erased; its proofs still hold")
    )
)]
pub async fn payload(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    EntryId(digest): EntryId,
) -> Result<Response, Problem> {
    let entry = stored_entry(&app, digest).await?;
    must_be_open(&app, &caller, &entry)?;
    let statement = entry.statement.clone().ok_or_else(erased)?;
    let payload = match attached(&statement)? {
        Some(payload) => payload,
        None => kept(&app, &entry).await?.ok_or_else(|| never_kept(&entry))?,
    };
    let headers = [(CONTENT_TYPE, "application/octet-stream"), (CACHE_CONTROL, CACHED)];
    Ok((headers, payload).into_response())
}

/// The payload inside a registered statement; `None` if it is detached.
pub fn attached(statement: &Bytes) -> Result<Option<Bytes>, Problem> {
    let parsed = SignedStatement::parse(statement.clone()).map_err(|malformed| {
        tracing::error!(%malformed, "a registered statement cannot be read");
        Problem::internal()
    })?;
    Ok(parsed.payload().map(|payload| parsed.bytes().slice_ref(payload)))
}

/// The detached payload that is stored with an entry.
pub async fn kept(app: &App, entry: &Entry) -> Result<Option<Bytes>, Problem> {
    let collateral = app.log.store.collateral(entry.index).await?;
    Ok(collateral.into_iter().find(|item| item.kind == COLLATERAL_PAYLOAD).map(|item| item.bytes))
}

fn never_kept(entry: &Entry) -> Problem {
    let detail = format!(
        "The payload was sent next to the statement and was not stored, as the policy at leaf {} demands",
        entry.policy
    );
    Problem::new(StatusCode::NOT_FOUND, "payload-not-kept", "Not Found", detail).by_rule(entry.rule.clone())
}
