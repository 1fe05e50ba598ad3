//! `GET /jobs/{id}`.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, StatusCode};
use serving::problem::{JsonProblem, ProblemDetails};

use super::answers::JobView;
use super::problem::database;
use super::state::ServiceState;
use super::verify::view;

/// Returns a job of the client, without waiting.
#[utoipa::path(
    get,
    path = "/jobs/{id}",
    tag = "Verification",
    security((), ("token" = [])),
    params(("id" = String, Path, description = "The name of the job, a UUID")),
    responses(
        (status = 200, description = "The job, in whatever state", body = JobView),
        (status = 400, description = "The name of the job is not UTF-8", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 401, description = "No valid token", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "The client has no such job", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "A defect of the service", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "The database does not answer", body = ProblemDetails, content_type = "application/problem+json")
    )
)]
pub async fn job(
    State(state): State<ServiceState>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, JsonProblem> {
    let client = state.client(&headers)?;
    let job = state.jobs.store.job(&id).await.map_err(|error| database(&error))?;
    let job = job.filter(|job| job.client == client.name);
    let unknown =
        || JsonProblem::new(StatusCode::NOT_FOUND, "job-unknown", "there is no such job of this client");
    let described = view(job.ok_or_else(unknown)?, &state.log)?;
    Ok(([(CACHE_CONTROL, "no-cache")], Json(described)).into_response())
}
