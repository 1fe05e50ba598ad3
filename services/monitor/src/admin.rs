//! The monitor's administrative HTTP endpoints: `/metrics` (Prometheus text format) and `/livez` (liveness probe).

use std::sync::Arc;

use axum::Router;

use crate::metrics::Metrics;

/// Returns the routes of the administrative endpoints; serves [`Metrics`].
pub fn routes(metrics: Arc<Metrics>) -> Router {
    let text = move || std::future::ready(metrics.text());
    Router::new()
        .route("/livez", serving::admin::liveness(|| None))
        .route("/metrics", serving::admin::metrics(text))
}
