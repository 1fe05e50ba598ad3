//! The HTTP interface: `POST /verify`, `GET /jobs/{id}` and `GET /v1/engines` on the public listener, health and metrics on the
//! admin listener, and `GET /openapi.json` on both.

mod answers;
mod engines;
mod jobs;
mod problem;
mod state;
mod verify;

use axum::{Router, middleware};
use serving::http_metrics::measured;
use serving::problem::for_every_error;
use serving::{admin, description, request_span};
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use state::ServiceState;

/// What the public listener has, for the 404 of other paths.
const RESOURCES: &str = "the resources are /verify, /jobs/{id}, /v1/engines and /openapi.json";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tabellion verification service",
        description = "Runs checks on the work of agents, and registers signed receipts (VRF) about them. It has a listener for clients, \
                       and one for health and metrics. Every 4xx and 5xx of the first is RFC 9457 JSON. Every response has the \
                       request's number in X-Request-Id.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "Verification", description = "The public listener (`listen`)"),
        (name = "Admin", description = "The admin listener (`admin_listen`): health and metrics")
    ),
    modifiers(&Tokens)
)]
struct Description;

/// The bearer tokens of clients.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut Document) {
        let mut scheme = Http::new(HttpAuthScheme::Bearer);
        scheme.description = Some("The token of a client, if the configuration has clients".to_owned());
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// The OpenAPI description of both listeners as checked in (`verification.json`): pretty JSON, deterministic.
pub fn openapi_json() -> String {
    let listeners = described_public().into_openapi().merge_from(described_admin().into_openapi());
    description::text(&Description::openapi().merge_from(listeners))
}

/// The routes of the public listener.
pub fn public(state: ServiceState) -> Router {
    let http = state.metrics.http.clone();
    for_every_error(served(described_public(), state), RESOURCES)
        .layer(middleware::from_fn(request_span::in_span))
        .layer(middleware::from_fn_with_state(http, measured))
}

/// The routes of the admin listener: `/livez`, `/readyz` and `/metrics`.
pub fn admin(state: ServiceState) -> Router {
    served(described_admin(), state)
}

/// Adds the description, which both listeners serve.
fn served(routes: OpenApiRouter<ServiceState>, state: ServiceState) -> Router {
    Router::from(routes).route(description::PATH, description::document(openapi_json())).with_state(state)
}

fn described_public() -> OpenApiRouter<ServiceState> {
    OpenApiRouter::new()
        .routes(routes!(verify::verify))
        .routes(routes!(jobs::job))
        .routes(routes!(engines::engines))
}

fn described_admin() -> OpenApiRouter<ServiceState> {
    let obstacles = |state: ServiceState| async move {
        let backlog = state.jobs.store.backlog().await;
        let unreadable = backlog.err().map(|error| error.to_string());
        unreadable.into_iter().chain(state.failed_write.reported()).collect()
    };
    let text = |state: ServiceState| async move {
        state.metrics.text(&state.jobs.store, state.jobs.unfinished()).await
    };
    OpenApiRouter::new()
        .routes(admin::liveness(|_| None))
        .routes(admin::readiness(obstacles))
        .routes(admin::metrics(text))
}
