//! Configuration documents of older SCRAPI drafts (-04 to -06), for peers that still request them.
//!
//! Both refer to their successor, the key set, and carry a `Deprecation` header field. They also contain the leaf rule,
//! which a verifier needs, and the entry of the registration policy in force.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK};
use http::{HeaderName, HeaderValue};
use scitt::cbor::ItemWriter;

use super::Binary;
use crate::edge::media;
use crate::routes::app::App;

/// The issuer of receipts (draft -06).
#[utoipa::path(
    get,
    path = "/.well-known/scitt-configuration",
    tag = "Service",
    responses((status = 200, description = "Deprecated: issuer and key set, CBOR", body = Binary, content_type = "application/cbor",
        headers(("Deprecation" = String), ("Link" = String, description = "rel=successor-version: the key set"))))
)]
pub async fn scitt_configuration(State(app): State<App>) -> Response {
    document(&app)
}

/// Drafts -04 and -05: issuer and where its keys are.
#[utoipa::path(
    get,
    path = "/.well-known/transparency-configuration",
    tag = "Service",
    responses((status = 200, description = "Deprecated: issuer and key set, CBOR", body = Binary, content_type = "application/cbor",
        headers(("Deprecation" = String), ("Link" = String, description = "rel=successor-version: the key set"))))
)]
pub async fn transparency_configuration(State(app): State<App>) -> Response {
    document(&app)
}

fn document(app: &App) -> Response {
    let identity = &app.log.identity;
    let keys = format!("{}/.well-known/scitt-keys", identity.public_url);
    let mut body = ItemWriter::new();
    let policy = app.log.policies.current();
    body.map(if policy.is_some() { 5 } else { 3 });
    body.text("issuer").text(&identity.iss);
    body.text("jwks_uri").text(&keys);
    body.text("leaf_rule").text(registration::policy::LEAF_RULE);
    if let Some(policy) = policy {
        let statement = format!("{}/v1/entries/{}/statement", identity.public_url, policy.entry);
        body.text("registration_policy").text(&statement);
        body.text("policy_entry").text(&policy.entry.to_string());
    }
    let mut response = (
        [
            (CONTENT_TYPE, media::CBOR),
            (CACHE_CONTROL, "public, max-age=300"),
            (HeaderName::from_static("deprecation"), "true"),
        ],
        body.into_bytes(),
    )
        .into_response();
    if let Ok(link) = HeaderValue::from_str(&format!("<{keys}>; rel=\"successor-version\"")) {
        response.headers_mut().insert(LINK, link);
    }
    response
}
