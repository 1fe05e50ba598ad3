//! The OpenAPI description, and a page to read it without loading anything from other hosts.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, LOCATION};
use serving::description;
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::{Config, SwaggerUi};

/// Content security policy of the page: scripts, styles and requests of this service only.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                           connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes `/openapi.json` and `/docs`.
pub fn routes(openapi: &OpenApi) -> Router {
    // Relative to the page, as a proxy may serve it below a path.
    let config = Config::from(format!("..{}", description::PATH)).validator_url("none");
    let page = Router::from(SwaggerUi::new("/docs").config(config));
    Router::new()
        .route(description::PATH, description::document(description::text(openapi)))
        .merge(page.layer(from_fn(confined)))
}

/// Sets the content security policy, and makes the redirection of `/docs` to the page relative to it.
async fn confined(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    if let Some(location) = headers.get_mut(LOCATION) {
        *location = HeaderValue::from_static("docs/");
    }
    response
}
