//! The monitor's administrative HTTP endpoints: `/metrics` (Prometheus text format), `/livez` (liveness probe), and
//! `/openapi.json`, the description of both.

use std::sync::Arc;

use axum::{Router, middleware};
use serving::http_metrics::measured;
use serving::{admin, description};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::metrics::Metrics;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tabellion monitor",
        description = "Watches transparency logs. Its findings are in its state folder, its webhooks and its metrics. Every response \
                       has the request's number in X-Request-Id.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags((name = "Admin", description = "Health and metrics"))
)]
struct Description;

/// Returns the routes of the administrative endpoints; serves [`Metrics`].
pub fn routes(metrics: Arc<Metrics>) -> Router {
    let (routes, collected) = described().split_for_parts();
    let document = description::document(description::text(&collected));
    let http = metrics.http.clone();
    routes
        .route(description::PATH, document)
        .with_state(metrics)
        .layer(middleware::from_fn_with_state(http, measured))
}

/// All routes with their OpenAPI description, from one list.
fn described() -> OpenApiRouter<Arc<Metrics>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(admin::liveness(|_| None))
        .routes(admin::metrics(|metrics: Arc<Metrics>| std::future::ready(metrics.text())))
}
