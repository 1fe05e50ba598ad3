//! `/.well-known/scitt-keys`, and a single key of it: SCRAPI -11, 2.1 and 2.2.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};

use super::Binary;
use crate::edge::conditional::{conditional_response, tag_of};
use crate::edge::media;
use crate::edge::problem::{Problem, shortened};
use crate::routes::app::App;

/// `Cache-Control` of the key set: a new key signs receipts seconds after its announcement, so a client that verifies one
/// must not get an older set from a cache.
const REVALIDATED: &str = "no-cache";
/// `Cache-Control` of a single key, of which only the end can change.
const CACHED: &str = "public, max-age=300";

/// All keys that receipts of this log verify under.
#[utoipa::path(
    get,
    path = "/.well-known/scitt-keys",
    tag = "SCRAPI",
    responses(
        (status = 200, description = "A COSE_KeySet; a JWK Set where JSON is asked for. Retired keys stay in it",
         content((Binary = "application/cbor"), (Object = "application/json"), (Object = "application/jwk-set+json"))),
        (status = 304, description = "Still the keys that If-None-Match names")
    )
)]
pub async fn all_keys(State(app): State<App>, headers: HeaderMap) -> Response {
    let keys = app.log.keys.load_full();
    let json = [media::JSON, media::JWK_SET].into_iter().find(|json| wants(&headers, json));
    let (form, body) = json.map_or((media::CBOR, &keys.set), |json| (json, &keys.jwk_set));
    let response = conditional_response(&headers, tag_of(body), form, REVALIDATED, body.clone());
    ([media::NEGOTIATED], response).into_response()
}

/// Returns `true` if the client prefers JSON to CBOR, the resource's default form.
fn wants(headers: &HeaderMap, json: &str) -> bool {
    media::prefers(headers, json, &[media::CBOR]) && !media::prefers(headers, media::CBOR, &[json])
}

/// One key.
#[utoipa::path(
    get,
    path = "/.well-known/scitt-keys/{kid_value}",
    tag = "SCRAPI",
    params(("kid_value" = String, Path, description = "The kid in unpadded base64url, or raw where that is safe in a path")),
    responses(
        (status = 200, description = "A COSE_Key", body = Binary, content_type = "application/cbor"),
        (status = 404, description = "No such key", content_type = "application/concise-problem-details+cbor")
    )
)]
pub async fn one_key(
    State(app): State<App>,
    kid: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<Response, Problem> {
    let segment = kid.map(|Path(segment)| segment).unwrap_or_default();
    let keys = app.log.keys.load_full();
    let key = keys.find(&segment).cloned().ok_or_else(|| no_such_key(&segment))?;
    Ok(([(CONTENT_TYPE, media::CBOR), (CACHE_CONTROL, CACHED)], key).into_response())
}

fn no_such_key(segment: &str) -> Problem {
    let detail = format!("No key could be found for this kid value: {}", shortened(segment));
    Problem::new(StatusCode::NOT_FOUND, "key-unknown", "No such key", detail)
}
