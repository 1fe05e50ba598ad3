//! `POST /entries` and `GET /entries/{id}`: SCRAPI -11, 2.3 and 2.4.
//!
//! The entry ID is the statement's digest, so `Location` is identical for 201, for 202, and for a resubmission of the
//! same statement.

use std::time::Instant;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use merkle::EntryDigest;
use scitt::{ContentType, SignedStatement};

use super::Binary;
use super::names::{Locator, NamedBy, named};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::conditional::{conditional_response, tag_of};
use crate::edge::media;
use crate::edge::problem::Problem;
use crate::edge::request_parsing::SubmittedStatement;
use crate::log::registration_outcome::Registered;
use crate::log::state::{Log, Resolved};
use crate::metrics::latency::Stage;
use crate::routes::app::App;
use crate::run_blocking::run_blocking;
use crate::spans;

/// A statement with a detached payload: both parts, once each, and no other.
#[derive(utoipa::ToSchema)]
#[allow(dead_code)]
pub struct DetachedForm {
    /// A tagged COSE_Sign1 whose payload is nil.
    #[schema(value_type = String, format = Binary)]
    statement: Vec<u8>,
    /// The content that the signature covers. Stored or dropped by the policy.
    #[schema(value_type = String, format = Binary)]
    payload: Vec<u8>,
}

/// Register a Signed Statement.
///
/// The same statement is one entry, however often it is registered: the answer is 201 again, with a fresh receipt.
#[utoipa::path(
    post,
    path = "/entries",
    tag = "SCRAPI",
    request_body(
        content((Binary = "application/cose"), (Binary = "application/scitt-statement+cose"),
                (DetachedForm = "multipart/form-data")),
        description = "A tagged COSE_Sign1; its unprotected header is not registered. One with a detached payload comes as a \
                       form with both."
    ),
    responses(
        (status = 201, description = "Registered; the body is the receipt",
         content((Binary = "application/cose"), (Binary = "application/scitt-receipt+cose")),
         headers(("Location" = String, description = "The receipt's URL"))),
        (status = 202, description = "Accepted; the receipt will be at Location",
         headers(("Location" = String, description = "The receipt's URL"), ("Retry-After" = u32))),
        (status = 400, description = "Malformed request, Bad Signature Algorithm, Payload Missing, or Rejected",
         content_type = "application/concise-problem-details+cbor"),
        (status = 403, description = "Log Frozen: no more entries are added to this log; or the token is bound to other issuers or content types", content_type = "application/concise-problem-details+cbor"),
        (status = 409, description = "On Hold: an entry that it would erase is needed for a case",
         content_type = "application/concise-problem-details+cbor"),
        (status = 413, description = "The statement is too large", content_type = "application/concise-problem-details+cbor"),
        (status = 415, description = "Not a type that statements come in, or a content coding", content_type = "application/concise-problem-details+cbor")
    )
)]
pub async fn register(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    receipt_type: ReceiptType,
    handed_in: SubmittedStatement,
) -> Result<Response, Problem> {
    let statement = parse(&app, handed_in.statement.clone())?;
    must_cover(&caller, &statement)?;
    let registered = app.log.register(&statement, handed_in.payload.as_ref()).await?;
    Ok(answer(&app, statement.digest(), registered, receipt_type))
}

/// Parses a statement; a malformed one is counted as [`Malformed`](crate::metrics::RegistrationOutcome::Malformed).
pub fn parse(app: &App, bytes: Bytes) -> Result<SignedStatement, Problem> {
    let started = Instant::now();
    let statement =
        spans::stage(Stage::Parse).in_scope(|| run_blocking(bytes.len(), || SignedStatement::parse(bytes)));
    app.edge.metrics.stage(Stage::Parse, started.elapsed());
    statement.map_err(|malformed| {
        app.edge.metrics.registration(crate::metrics::RegistrationOutcome::Malformed);
        malformed.into()
    })
}

/// Refuses to register a statement outside the scope of the caller's token. A hash envelope has the content type of its
/// preimage.
///
/// # Errors
/// 403 with the code `token-scope`.
pub fn must_cover(caller: &AuthenticatedCaller, statement: &SignedStatement) -> Result<(), Problem> {
    let header = statement.header();
    let issuer = header.iss();
    let preimage = || header.hash_envelope().and_then(|envelope| envelope.preimage_content_type.as_ref());
    let content_type = header.content_type().or_else(preimage).and_then(ContentType::as_text);
    caller.must_cover(issuer, content_type)
}

fn answer(app: &App, digest: EntryDigest, registered: Registered, receipt_type: ReceiptType) -> Response {
    let location = app.log.location(digest);
    match registered {
        Registered::Receipt { receipt, .. } => {
            (StatusCode::CREATED, [(LOCATION, location), receipt_type.header()], receipt).into_response()
        }
        Registered::Later => {
            (StatusCode::ACCEPTED, [(LOCATION, location), (RETRY_AFTER, retry_after(app))]).into_response()
        }
    }
}

/// Resolve a receipt.
///
/// A `receipt_id` or an `aer_id` leads to the first entry of that name; with `issuer`, to that issuer's.
#[utoipa::path(
    get,
    path = "/entries/{entry_id}",
    tag = "SCRAPI",
    params(("entry_id" = String, Path, description = "64 lowercase hex digits; or a UUID, or aer: and 16 of them"), NamedBy),
    responses(
        (status = 200, description = "A fresh receipt",
         content((Binary = "application/cose"), (Binary = "application/scitt-receipt+cose")),
         headers(("Location" = String, description = "This URL"))),
        (status = 204, description = "Registration is still running", headers(("Retry-After" = u32), ("Cache-Control" = String))),
        (status = 304, description = "Still the receipt that If-None-Match names"),
        (status = 303, description = "Where text/html is preferred: the page about the entry",
         headers(("Location" = String, description = "The page's URL"))),
        (status = 307, description = "The first entry of that name",
         headers(("Location" = String, description = "Its receipt's URL"), ("Link" = String, description = "rel=alternate, for every other entry of that name"))),
        (status = 400, description = "Invalid locator", content_type = "application/concise-problem-details+cbor"),
        (status = 404, description = "Not Found, or Registration Failed", content_type = "application/concise-problem-details+cbor")
    )
)]
pub async fn resolve(
    State(app): State<App>,
    locator: Locator,
    by: Result<Query<NamedBy>, QueryRejection>,
    receipt_type: ReceiptType,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let digest = match locator {
        Locator::Id(digest) => digest,
        Locator::Name(kind, name) => {
            let Query(by) =
                by.map_err(|_| Problem::malformed("query", "`issuer`, once, is all there is to ask"))?;
            return named(&app, kind, &name, by).await;
        }
    };
    if media::prefers(&headers, media::HTML_ESSENCE, &[media::COSE, media::RECEIPT, media::CBOR, media::JSON])
    {
        return Ok(page_of(&app, digest));
    }
    match app.log.resolve(digest).await? {
        Resolved::Receipt(receipt) => Ok(found(&app.log, digest, receipt, receipt_type, &headers)),
        Resolved::Pending => Ok(still_running(&app)),
        Resolved::Failed(why) => Err(failed(why)),
        Resolved::Unknown => Err(Problem::unknown_entry(&digest.to_string())),
    }
}

/// Leads a browser to the entry's page.
fn page_of(app: &App, digest: EntryDigest) -> Response {
    let page = format!("{}/ui/entries/{digest}", app.log.identity.public_url);
    let headers = [(LOCATION, page), (CACHE_CONTROL, "no-cache".to_owned())];
    (StatusCode::SEE_OTHER, headers, [media::NEGOTIATED]).into_response()
}

fn found(
    log: &Log,
    digest: EntryDigest,
    receipt: Bytes,
    receipt_type: ReceiptType,
    headers: &HeaderMap,
) -> Response {
    // A later response may have a fresher receipt, so caches must revalidate it.
    let response = conditional_response(headers, tag_of(&receipt), receipt_type.0, "no-cache", receipt);
    ([(LOCATION, log.location(digest))], [media::NEGOTIATED], response).into_response()
}

/// 204: a transient state that caches must not store.
pub fn still_running(app: &App) -> Response {
    let headers = [(RETRY_AFTER, retry_after(app)), (CACHE_CONTROL, "no-store".to_owned())];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The problem of an ID that no entry has; it says what became of a statement that was accepted.
pub async fn absent(app: &App, digest: EntryDigest) -> Problem {
    match app.log.resolve(digest).await {
        // It may have been registered in the meantime.
        Ok(Resolved::Pending | Resolved::Receipt(_)) => waiting(app),
        Ok(Resolved::Failed(why)) => failed(why),
        Ok(Resolved::Unknown) => Problem::unknown_entry(&digest.to_string()),
        Err(why) => why.into(),
    }
}

/// 404 with `Retry-After`.
fn waiting(app: &App) -> Problem {
    let detail = "The statement is accepted and waits for its place in the log";
    let retry_after = app.edge.limits.load().retry_after;
    Problem::new(StatusCode::NOT_FOUND, "entry-pending", "Not Found", detail).retry_after(retry_after.into())
}

fn failed(why: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "registration-failed", "Registration Failed", why)
}

fn retry_after(app: &App) -> String {
    app.edge.limits.load().retry_after.max(1).to_string()
}

/// The content type of a receipt, as the client prefers it.
#[derive(Clone, Copy, Debug)]
pub struct ReceiptType(&'static str);

impl ReceiptType {
    fn of(headers: &HeaderMap) -> Self {
        Self(media::cose_or(headers, media::RECEIPT))
    }

    fn header(self) -> (http::HeaderName, String) {
        (CONTENT_TYPE, self.0.to_owned())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ReceiptType {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(&parts.headers))
    }
}
