//! HTTP routes for logs, for monitors, and for the operator.
//!
//! Statuses and bodies follow tlog-witness v1.0.0; the 422 for a checkpoint of equal size and another root follows the
//! later text of the specification. Error texts are plain text and never repeat the request.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Router, middleware};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER as RETRY_AFTER_HEADER};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use serving::http_metrics::measured;
use serving::{admin, description, request_span};
use tlog::checkpoint::Checkpoint;
use tlog::note::SignatureLine;
use tlog::witness::{AddCheckpoint, CosignRefusal, SIZE_TYPE};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ledger::{Ledger, NotCosigned};
use crate::limits::{REQUEST_BYTES, REQUEST_TIME, RETRY_AFTER};
use crate::metrics::Metrics;
use crate::spans;

/// Content type of notes and error texts.
const TEXT: &str = "text/plain; charset=utf-8";

/// State shared by the routes.
#[derive(Clone)]
pub struct RouteState {
    /// Decides on cosignatures.
    pub ledger: Arc<Ledger>,
    /// Counts requests.
    pub metrics: Arc<Metrics>,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tabellion witness",
        description = "Cosigns the checkpoints of logs that it has seen grow (C2SP tlog-witness). Errors are plain text. Every \
                       response has the request's number in X-Request-Id.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "Witness", description = "The public listener: for logs and monitors"),
        (name = "Admin", description = "The admin listener: health and metrics")
    )
)]
struct Description;

/// The OpenAPI description of both listeners.
fn openapi_json() -> String {
    let listeners = described_public().into_openapi().merge_from(described_admin().into_openapi());
    description::text(&Description::openapi().merge_from(listeners))
}

/// The public routes: `POST /add-checkpoint` and `GET /{log}/checkpoint`.
pub fn public(state: RouteState) -> Router {
    let http = state.metrics.http.clone();
    served(described_public(), state)
        .layer(middleware::map_response(said_in_text))
        .layer(CatchPanicLayer::new())
        .layer(middleware::from_fn(request_span::in_span))
        .layer(middleware::from_fn_with_state(http, measured))
}

/// The routes of the admin listener: `/livez`, `/readyz` and `/metrics`.
pub fn admin(state: RouteState) -> Router {
    served(described_admin(), state)
}

/// Adds the description, which both listeners serve.
fn served(routes: OpenApiRouter<RouteState>, state: RouteState) -> Router {
    Router::from(routes).route(description::PATH, description::document(openapi_json())).with_state(state)
}

fn described_public() -> OpenApiRouter<RouteState> {
    OpenApiRouter::new().routes(routes!(add_checkpoint)).routes(routes!(latest))
}

fn described_admin() -> OpenApiRouter<RouteState> {
    let obstacles = |state: RouteState| async move {
        // Blocking, because a log's lock may be held during disk I/O.
        let found = tokio::task::spawn_blocking(move || obstacles(&state.ledger)).await;
        found.unwrap_or_else(|error| vec![error.to_string()])
    };
    let text = |state: RouteState| async move {
        let text = tokio::task::spawn_blocking(move || state.metrics.text(&state.ledger)).await;
        text.unwrap_or_else(|error| Err(prometheus::Error::Msg(error.to_string())))
    };
    OpenApiRouter::new()
        .routes(admin::liveness(|_| None))
        .routes(admin::readiness(obstacles))
        .routes(admin::metrics(text))
}

/// The reasons for which the witness cosigns nothing.
fn obstacles(ledger: &Ledger) -> Vec<String> {
    let doubt = ledger.is_in_doubt().then(|| "the state on disk is unknown".to_owned());
    let clock = match now() {
        Some(now) => ledger.clock_obstacle(now),
        None => Some("the clock is not set".to_owned()),
    };
    doubt.into_iter().chain(clock).collect()
}

/// Cosign a checkpoint that extends the last one.
///
/// The body is that of tlog-witness: a line `old` with the size of the log's last cosigned checkpoint, a consistency proof with
/// one hash a line, an empty line, and the signed checkpoint.
#[utoipa::path(
    post,
    path = "/add-checkpoint",
    tag = "Witness",
    request_body(content = String, content_type = "text/plain", description = "The request of tlog-witness"),
    responses(
        (status = 200, description = "The cosignature: one signature line of a signed note", body = String, content_type = "text/plain"),
        (status = 400, description = "The request cannot be parsed", body = String, content_type = "text/plain"),
        (status = 403, description = "The checkpoint has no valid signature of the log", body = String, content_type = "text/plain"),
        (status = 404, description = "The log is not witnessed here", body = String, content_type = "text/plain"),
        (status = 408, description = "The request took too long", body = String, content_type = "text/plain"),
        (status = 409, description = "`old` is not the last cosigned size, which is the body, or the checkpoint is older",
         body = String, content_type = "text/x.tlog.size"),
        (status = 413, description = "The request is too long, or broke off", body = String, content_type = "text/plain"),
        (status = 422, description = "The checkpoint is not proven to extend the last one", body = String, content_type = "text/plain"),
        (status = 429, description = "Too many requests for the log; Retry-After gives the time to wait", body = String,
         content_type = "text/plain"),
        (status = 500, description = "The witness failed", body = String, content_type = "text/plain"),
        (status = 503, description = "The state cannot be written, or the clock is behind the last cosignature; Retry-After gives the time to wait",
         body = String, content_type = "text/plain")
    )
)]
async fn add_checkpoint(State(state): State<RouteState>, request: Request<Body>) -> Response {
    let answer = decide(&state, request).await;
    state.metrics.answered(answer.status());
    answer
}

async fn decide(state: &RouteState, request: Request<Body>) -> Response {
    let body = Limited::new(request.into_body(), REQUEST_BYTES).collect();
    let bytes = match tokio::time::timeout(REQUEST_TIME, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long, or broke off"),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "the request took too long"),
    };
    let request = match AddCheckpoint::parse(&bytes) {
        Ok(request) => request,
        Err(flaw) => return refuse(StatusCode::BAD_REQUEST, &flaw.to_string()),
    };
    let Some(now) = now() else { return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the clock is not set") };
    let ledger = state.ledger.clone();
    let span = spans::add_checkpoint();
    let inside = span.clone();
    // Runs to completion even if the client disconnects, so that the saved state matches the cosignatures.
    let work = tokio::task::spawn_blocking(move || (inside.in_scope(|| ledger.add(&request, now)), request));
    match work.await {
        Ok((Ok(line), request)) => {
            spans::cosigned(&span, &request);
            cosigned(&line)
        }
        Ok((Err(why), request)) => {
            count_inconsistency(state, &why, &request);
            let refusal = answer(&why);
            spans::refused(&span, refusal.status());
            refusal
        }
        Err(error) => {
            tracing::error!(%error, "a request failed");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "the witness failed")
        }
    }
}

fn cosigned(line: &SignatureLine) -> Response {
    ([(CONTENT_TYPE, TEXT)], line.to_string()).into_response()
}

/// Maps each failure to its HTTP status.
fn answer(why: &NotCosigned) -> Response {
    let text = why.to_string();
    match why {
        NotCosigned::Refused(CosignRefusal::Seen(size)) => {
            (StatusCode::CONFLICT, [(CONTENT_TYPE, SIZE_TYPE)], format!("{size}\n")).into_response()
        }
        NotCosigned::Refused(refusal) => {
            refuse(StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST), &text)
        }
        NotCosigned::UnknownLog => refuse(StatusCode::NOT_FOUND, &text),
        NotCosigned::TooOften { wait, .. } => later(StatusCode::TOO_MANY_REQUESTS, &text, *wait),
        NotCosigned::NotKept(_) | NotCosigned::ClockBehind => {
            later(StatusCode::SERVICE_UNAVAILABLE, &text, RETRY_AFTER.as_secs())
        }
        NotCosigned::InDoubt | NotCosigned::Sign(_) | NotCosigned::Note(_) => {
            refuse(StatusCode::INTERNAL_SERVER_ERROR, &text)
        }
    }
}

fn refuse(status: StatusCode, reason: &str) -> Response {
    (status, [(CONTENT_TYPE, TEXT)], format!("{reason}\n")).into_response()
}

fn later(status: StatusCode, reason: &str, seconds: u64) -> Response {
    let mut response = refuse(status, reason);
    response.headers_mut().insert(RETRY_AFTER_HEADER, seconds.into());
    response
}

fn count_inconsistency(state: &RouteState, why: &NotCosigned, request: &AddCheckpoint) {
    let NotCosigned::Refused(CosignRefusal::Unproven(_) | CosignRefusal::Fork { .. }) = why else { return };
    if let Ok(checkpoint) = Checkpoint::parse_text(request.checkpoint.text()) {
        tracing::warn!(log = %checkpoint.origin(), size = checkpoint.size().get(), %why, "not cosigned");
        state.metrics.inconsistent(checkpoint.origin());
    }
}

/// The newest cosigned checkpoint of a log, for monitors.
#[utoipa::path(
    get,
    path = "/{log}/checkpoint",
    operation_id = "checkpoint",
    tag = "Witness",
    params(("log" = String, Path, description = "SHA-256 of the log's origin, in lower-case hex")),
    responses(
        (status = 200, description = "The checkpoint as a signed note, with the cosignature", body = String,
         content_type = "text/plain"),
        (status = 404, description = "No checkpoint of such a log was cosigned here", body = String, content_type = "text/plain")
    )
)]
async fn latest(State(state): State<RouteState>, Path(log): Path<String>) -> Response {
    // Blocking, because the log's lock may be held during disk I/O.
    let found = tokio::task::spawn_blocking(move || state.ledger.latest(&log)).await;
    match found.ok().flatten() {
        Some(latest) => {
            ([(CONTENT_TYPE, TEXT), (CACHE_CONTROL, "no-cache")], latest.note.to_string()).into_response()
        }
        None => refuse(StatusCode::NOT_FOUND, "no checkpoint of such a log was cosigned here"),
    }
}

/// Adds a text body to responses generated by the router (404, 405).
async fn said_in_text(response: Response) -> Response {
    match response.status() {
        status @ StatusCode::METHOD_NOT_ALLOWED => {
            let mut response = refuse(status, "this is asked in another way");
            let allow = response.headers().get(http::header::ALLOW).cloned();
            response.headers_mut().extend(allow.map(|allow| (http::header::ALLOW, allow)));
            response
        }
        StatusCode::NOT_FOUND if !response.headers().contains_key(CONTENT_TYPE) => {
            refuse(StatusCode::NOT_FOUND, "nothing is here")
        }
        _ => response,
    }
}

/// The current time in Unix seconds; `None` before 1970.
pub fn now() -> Option<u64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}
