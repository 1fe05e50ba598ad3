//! The OpenAPI description of a daemon, which each of its listeners serves at `/openapi.json`.
//!
//! Not here: the descriptions of routes, which are next to their handlers.

use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use utoipa::openapi::OpenApi;

/// Path of the description.
pub const PATH: &str = "/openapi.json";

/// The text of a description, as it is checked in and served: pretty JSON, deterministic, with a final line end.
pub fn text(description: &OpenApi) -> String {
    let mut text = description.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// The handler of [`PATH`], which serves the text of a description.
pub fn document<S>(text: String) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    let text = Bytes::from(text);
    get(move || async move {
        let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=300")];
        (headers, text).into_response()
    })
}
