//! The span of each request.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use serving::request_id::RequestId;
use tracing::Instrument;

use crate::spans;

/// Serves a request in its span, which has the number that the listener gave the request.
pub async fn in_span(request: Request, next: Next) -> Response {
    let id = RequestId::of(request.extensions());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let span = spans::request(id, request.method(), route, request.headers());
    let response = next.run(request).instrument(span.clone()).await;
    spans::answered(&span, response.status());
    response
}
