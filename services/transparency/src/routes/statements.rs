//! Statements as registered, and with a receipt attached.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use merkle::{EntryDigest, LeafIndex};
use store::Entry;

use super::bodies::must_be_open;
use super::entries::{absent, still_running};
use super::{Binary, EntryId};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::conditional::conditional_response;
use crate::edge::media;
use crate::edge::problem::Problem;
use crate::log::state::Resolved;
use crate::routes::app::App;

/// `Cache-Control` of statements: short, because a statement may be erased.
pub const CACHED: &str = "public, max-age=60";

/// The Signed Statement, with an empty unprotected header.
#[utoipa::path(
    get,
    path = "/v1/entries/{entry_id}/statement",
    tag = "Log",
    params(("entry_id" = String, Path, description = "64 lowercase hex digits")),
    responses(
        (status = 200, description = "The statement; its SHA-256 is the entry ID",
         content((Binary = "application/cose"), (Binary = "application/scitt-statement+cose"))),
        (status = 304, description = "Still the statement that If-None-Match names"),
        (status = 400, description = "Invalid locator"),
        (status = 401, description = "The body is closed, and no token was shown; or the token is not known, or has expired"),
        (status = 403, description = "The body is closed to this token"),
        (status = 404, description = "Not Found; with Retry-After, the statement is accepted and waits for its place in the log", headers(("Retry-After" = u32))),
        (status = 410, description = "The statement was erased; its proofs still hold")
    )
)]
pub async fn statement(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    EntryId(digest): EntryId,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (_, statement) = stored(&app, &caller, digest).await?;
    let tag = format!("\"{digest}\"");
    let response = conditional_response(&headers, tag, statement_type(&headers), CACHED, statement);
    Ok(([media::NEGOTIATED], response).into_response())
}

/// The Transparent Statement: the statement with the receipt of its registration attached.
#[utoipa::path(
    get,
    path = "/v1/entries/{entry_id}/transparent",
    tag = "Log",
    params(("entry_id" = String, Path, description = "64 lowercase hex digits")),
    responses(
        (status = 200, description = "The statement with one receipt",
         content((Binary = "application/cose"), (Binary = "application/scitt-statement+cose"))),
        (status = 204, description = "Registration is still running", headers(("Retry-After" = u32), ("Cache-Control" = String))),
        (status = 400, description = "Invalid locator"),
        (status = 401, description = "The body is closed, and no token was shown; or the token is not known, or has expired"),
        (status = 403, description = "The body is closed to this token"),
        (status = 404, description = "Not Found; with Retry-After, the statement is accepted and waits for its place in the log", headers(("Retry-After" = u32))),
        (status = 409, description = "The issuer left no room for a receipt: it signed label 394"),
        (status = 410, description = "The statement was erased; its receipt can still be had")
    )
)]
pub async fn transparent(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    EntryId(digest): EntryId,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (index, statement) = stored(&app, &caller, digest).await?;
    let Resolved::Receipt(receipt) = app.log.dated_receipt(index).await? else {
        return Ok(still_running(&app));
    };
    let transparent =
        scitt::transparent::attach(&statement, &[receipt]).map_err(|cause| cannot_attach(&cause))?;
    let headers = [(CONTENT_TYPE, statement_type(&headers)), (CACHE_CONTROL, "no-cache")];
    Ok((headers, [media::NEGOTIATED], transparent).into_response())
}

/// 409: the issuer signed a header that leaves no room for a receipt. The statement itself was parsed at its
/// registration.
fn cannot_attach(cause: &scitt::Malformed) -> Problem {
    let detail = format!("The receipt cannot be attached to this statement ({cause}); fetch it separately");
    Problem::new(StatusCode::CONFLICT, "no-room-for-receipt", "Not Attachable", detail)
}

fn statement_type(headers: &HeaderMap) -> &'static str {
    media::cose_or(headers, media::STATEMENT)
}

async fn stored(
    app: &App,
    caller: &AuthenticatedCaller,
    digest: EntryDigest,
) -> Result<(LeafIndex, Bytes), Problem> {
    let entry = stored_entry(app, digest).await?;
    must_be_open(app, caller, &entry)?;
    Ok((entry.index, entry.statement.ok_or_else(erased)?))
}

/// 410 `erased`.
pub fn erased() -> Problem {
    let detail = "The statement was erased; its receipt can still be had";
    Problem::new(StatusCode::GONE, "erased", "Gone", detail)
}

/// The entry with this ID, or 404, which says what became of a statement that was accepted. A damaged entry is an error.
pub async fn stored_entry(app: &App, digest: EntryDigest) -> Result<Entry, Problem> {
    let index = leaf_of(app, digest).await?;
    let entry = app.log.store.entry(index).await?;
    Ok(entry.ok_or_else(|| Problem::unknown_entry(&digest.to_string()))?.verified()?)
}

/// The leaf of the entry with this ID, or the 404 of [`stored_entry`].
pub async fn leaf_of(app: &App, digest: EntryDigest) -> Result<LeafIndex, Problem> {
    match app.log.index_of(digest).await? {
        Some(leaf) => Ok(leaf),
        None => Err(absent(app, digest).await),
    }
}
