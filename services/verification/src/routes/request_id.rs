//! The number and the span of each request.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderName, HeaderValue};
use tracing::Instrument;
use uuid::Uuid;

use crate::spans;

/// The header field with the number of a request, which its span has too.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Serves a request in its span, and adds its number to the response.
pub async fn with_request_id(request: Request, next: Next) -> Response {
    let id = Uuid::new_v4();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let span = spans::request(id, request.method(), route, request.headers());
    let mut response = next.run(request).instrument(span.clone()).await;
    spans::answered(&span, response.status());
    let value = HeaderValue::try_from(id.to_string()).ok();
    response.headers_mut().extend(value.map(|value| (REQUEST_ID, value)));
    response
}
