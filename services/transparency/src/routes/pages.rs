//! The OpenAPI description, and a page to read it without loading anything from other hosts.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::edge::media;

/// Content security policy of the page: scripts, styles and requests of this service only.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                           connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes `/openapi.json` and `/docs`.
pub fn routes(openapi: utoipa::openapi::OpenApi) -> Router {
    let json = Bytes::from(openapi.to_json().unwrap_or_default());
    let page =
        Router::from(SwaggerUi::new("/docs").config(Config::from("/openapi.json").validator_url("none")));
    Router::new()
        .route("/openapi.json", get(|| async move { description(json) }))
        .merge(page.layer(from_fn(confined)))
}

fn description(json: Bytes) -> Response {
    ([(CONTENT_TYPE, media::JSON), (CACHE_CONTROL, "public, max-age=300")], json).into_response()
}

async fn confined(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    response
}
