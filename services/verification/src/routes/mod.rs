//! The HTTP interface: `POST /verify`, `GET /jobs/{id}`, `GET /v1/engines`, `GET /openapi.json`.

mod answers;
mod engines;
mod jobs;
mod problem;
mod state;
mod verify;

use std::any::Any;

use axum::response::{IntoResponse, Response};
use axum::{Router, middleware};
use http::StatusCode;
use http::header::ALLOW;
use serving::{description, request_span};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use state::ServiceState;

use problem::Problem;

#[derive(OpenApi)]
#[openapi(info(
    title = "Tabellion verification service",
    description = "Runs checks on the work of agents, and registers signed receipts (VRF) about them. Every 4xx and 5xx \
                       is RFC 9457 JSON.",
    license(name = "Apache-2.0", identifier = "Apache-2.0")
))]
struct Description;

/// All routes with their OpenAPI description, from one list.
fn described() -> OpenApiRouter<ServiceState> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(verify::verify))
        .routes(routes!(jobs::job))
        .routes(routes!(engines::engines))
}

/// The OpenAPI description as checked in (`verification.json`): pretty JSON, deterministic.
pub fn openapi_json() -> String {
    description::text(&described().into_openapi())
}

/// The routes of the public listener.
pub fn public(state: ServiceState) -> Router {
    let (routes, collected) = described().split_for_parts();
    routes
        .route(description::PATH, description::document(description::text(&collected)))
        .with_state(state)
        .layer(middleware::map_response(with_problem))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(request_span::in_span))
}

/// Adds problem details to the errors that are not from the routes themselves.
async fn with_problem(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || problem::is_problem(response.headers()) {
        return response;
    }
    let (code, detail) = match status {
        StatusCode::NOT_FOUND => {
            ("not-found", "the resources are /verify, /jobs/{id}, /v1/engines and /openapi.json")
        }
        StatusCode::METHOD_NOT_ALLOWED => ("method", "see Allow"),
        status if status.is_client_error() => ("request-malformed", "the request cannot be read"),
        _ => ("internal", "the request could not be served"),
    };
    let mut answer = Problem::new(status, code, detail).into_response();
    let allow = response.headers().get(ALLOW).cloned();
    answer.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
    answer
}

/// The answer to a request whose handler has panicked.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    // The hook has printed the panic.
    tracing::error!("a request ended in a panic");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the request could not be served")
        .into_response()
}
