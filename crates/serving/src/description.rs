//! The OpenAPI description of a daemon, which each of its listeners serves at `/openapi.json`.
//!
//! Not here: the descriptions of routes, which are next to their handlers.

use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{OpenApi, Ref, RefOr};

/// Path of the description.
pub const PATH: &str = "/openapi.json";
/// Header field with the request's number ([`REQUEST_ID`](crate::request_id::REQUEST_ID)), as descriptions write it, and its
/// name among their components.
const REQUEST_ID: &str = "X-Request-Id";

/// The text of a description, as it is checked in and served: pretty JSON, deterministic, with a final line end. Every
/// response in it has the header field of the request's number, which the listener adds.
pub fn text(description: &OpenApi) -> String {
    let mut description = description.clone();
    add_request_id(&mut description);
    let mut text = description.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

fn add_request_id(description: &mut OpenApi) {
    let components = description.components.get_or_insert_default();
    components.headers.insert(REQUEST_ID.to_owned(), RefOr::T(request_id()));
    let operations = description.paths.paths.values_mut().flat_map(operations);
    for response in operations.flat_map(|operation| operation.responses.responses.values_mut()) {
        if let RefOr::T(response) = response {
            let header = Ref::new(format!("#/components/headers/{REQUEST_ID}"));
            response.headers.insert(REQUEST_ID.to_owned(), RefOr::Ref(header));
        }
    }
}

fn request_id() -> Header {
    let format = SchemaFormat::Custom("uuid".to_owned());
    let uuid = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
    let description = "The number of the request, which its line in the daemon's log has too";
    HeaderBuilder::new().schema(Some(uuid)).description(Some(description)).build()
}

/// Returns the operations of a path.
fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, options, head, patch, trace, query, .. } = path;
    [get, put, post, delete, options, head, patch, trace, query].into_iter().flatten()
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

#[cfg(test)]
mod tests {
    use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathsBuilder};
    use utoipa::openapi::{OpenApiBuilder, ResponseBuilder};

    use super::*;

    #[test]
    fn every_response_of_every_operation_has_the_number_of_the_request() {
        let answer = || ResponseBuilder::new().description("An answer").build();
        let operation =
            || OperationBuilder::new().response("200", answer()).response("404", answer()).build();
        let path = |method| PathItem::new(method, operation());
        let paths = PathsBuilder::new().path("/a", path(HttpMethod::Get)).path("/b", path(HttpMethod::Post));
        let text = text(&OpenApiBuilder::new().paths(paths.build()).build());
        let reference = format!("\"$ref\": \"#/components/headers/{REQUEST_ID}\"");
        assert_eq!(text.matches(&reference).count(), 4, "{text}");
        assert_eq!(text.matches("\"format\": \"uuid\"").count(), 1, "{text}");
        assert_eq!(REQUEST_ID.to_ascii_lowercase(), crate::request_id::REQUEST_ID.as_str());
    }
}
