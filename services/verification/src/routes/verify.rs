//! `POST /verify`.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use checks::CheckRequest;
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER as RETRY_AFTER_HEADER};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serving::problem::{JsonProblem, ProblemDetails};
use verification_store::{JobState, StoredJob};

use super::answers::JobView;
use super::problem::{cannot_be_run, database, not_accepted, of_failure, quota, subject};
use super::state::ServiceState;
use crate::limits::{BODY_TIME, RETRY_AFTER};

/// Checks an agent's work and signs a receipt. A repeated request has the same result.
#[utoipa::path(
    post,
    path = "/verify",
    tag = "Verification",
    security((), ("token" = [])),
    request_body(content = Object, description = "The work and the checks of one tier", content_type = "application/json"),
    responses(
        (status = 200, description = "The receipt; its verdict says whether the work passed", body = JobView),
        (status = 202, description = "Not finished yet", body = JobView, headers(("Location" = String, description = "The job"), ("Retry-After" = u64, description = "Seconds until it is worth asking again"))),
        (status = 400, description = "The body broke off", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 403, description = "The token is for the work of another agent", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "The chain of receipts is halted", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 410, description = "The job was removed meanwhile", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 413, description = "The request is too large", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, description = "The request is not JSON", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "The request cannot be run", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 429, description = "The quota is used up, or the client's share of the queue", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "A defect of the service", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "The queue is full, the runner failed, or the database does not answer", body = ProblemDetails, content_type = "application/problem+json")
    )
)]
pub async fn verify(State(state): State<ServiceState>, request: Request<Body>) -> Response {
    let answer = answer(&state, request).await.unwrap_or_else(IntoResponse::into_response);
    state.metrics.answered(answer.status());
    answer
}

async fn answer(state: &ServiceState, request: Request<Body>) -> Result<Response, JsonProblem> {
    let client = state.client(request.headers())?;
    client.admit().map_err(quota)?;
    refuse_other_types(request.headers())?;
    let text = body(request.into_body(), state.body_bytes).await?;
    let request = CheckRequest::parse(&text)
        .map_err(|error| cannot_be_run(error.pointer.clone(), error.to_string()))?;
    if !client.may_name(request.subject()) {
        return Err(subject());
    }
    let job = state.jobs.submit(&client, &request, &text).await.map_err(not_accepted)?;
    match state.jobs.wait(&job.id, state.waits).await.map_err(|error| database(&error))? {
        Some(job) => respond(job, &state.log),
        None => Err(JsonProblem::new(StatusCode::GONE, "job-unknown", "the job was removed")),
    }
}

fn respond(job: StoredJob, log: &str) -> Result<Response, JsonProblem> {
    if let JobState::Failed { code, reason } = job.state {
        return Err(of_failure(code, reason));
    }
    let is_done = matches!(job.state, JobState::Done(_));
    let location = format!("/jobs/{}", job.id);
    let mut response = Json(view(job, log)?).into_response();
    if !is_done {
        *response.status_mut() = StatusCode::ACCEPTED;
        response.headers_mut().insert(RETRY_AFTER_HEADER, RETRY_AFTER.as_secs().into());
    }
    response.headers_mut().extend(HeaderValue::try_from(location).ok().map(|value| (LOCATION, value)));
    Ok(response)
}

/// Describes a job.
pub fn view(job: StoredJob, log: &str) -> Result<JobView, JsonProblem> {
    JobView::of(job, log).map_err(|error| {
        tracing::error!(%error, "a stored receipt cannot be read");
        JsonProblem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the stored receipt cannot be read")
    })
}

fn refuse_other_types(headers: &HeaderMap) -> Result<(), JsonProblem> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    match essence.eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => {
            let detail = "a request has the content type application/json";
            Err(JsonProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content-type", detail))
        }
    }
}

async fn body(body: Body, most: usize) -> Result<Bytes, JsonProblem> {
    let read = tokio::time::timeout(BODY_TIME, Limited::new(body, most).collect());
    match read.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("a request has at most {most} bytes");
            Err(JsonProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail))
        }
        Ok(Err(error)) => {
            Err(JsonProblem::new(StatusCode::BAD_REQUEST, "body", format!("the body broke off: {error}")))
        }
        Err(_) => {
            Err(JsonProblem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not arrive in time"))
        }
    }
}
