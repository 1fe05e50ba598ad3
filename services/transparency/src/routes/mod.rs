//! Handlers: one module per resource.

pub mod agents;
mod answers;
pub mod app;
pub mod batch;
pub mod bodies;
pub mod checkpoints;
pub mod configuration;
pub mod description;
pub mod entries;
pub mod entry;
pub mod entry_page;
pub mod entry_query;
pub mod equivocations;
pub mod erasures;
pub mod evaluate;
pub mod evidence;
pub mod issuers;
pub mod keys;
pub mod links;
pub mod names;
pub mod pages;
pub mod paging;
pub mod payloads;
pub mod policy;
pub mod proof;
pub mod proven_search;
pub mod search;
pub mod sessions;
pub mod statements;
pub mod stream_list;
pub mod streams;
pub mod tail;
pub mod tlog;
pub mod witnesses;

use std::str::FromStr;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path};
use axum::response::Response;
use http::HeaderValue;
use http::header::LINK;
use http::request::Parts;
use merkle::EntryDigest;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::edge::problem::Problem;
use crate::routes::app::App;

/// Bytes, to the API's description.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code)]
pub struct Binary(Vec<u8>);

/// Extractor of an entry ID in the path: 64 lowercase hex digits, or 400 `Invalid locator`.
pub struct EntryId(pub EntryDigest);

impl<S: Send + Sync> FromRequestParts<S> for EntryId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(id) =
            Path::<String>::from_request_parts(parts, state).await.map_err(|_| Problem::invalid_locator())?;
        EntryDigest::from_str(&id).map(Self).map_err(|_| Problem::invalid_locator())
    }
}

/// Parses a number in canonical form: digits, no sign, no leading zero. So each resource has one name.
pub fn canonical(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// The cause of a malformed query, without the text of the framework that parsed it.
pub fn wrong_query(refused: &QueryRejection) -> String {
    let refused: &(dyn std::error::Error + 'static) = refused;
    let causes = std::iter::successors(Some(refused), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// Deserializes an optional number of a query in [`canonical`] form.
pub fn plain_number<'de, D: Deserializer<'de>, N: TryFrom<u64>>(query: D) -> Result<Option<N>, D::Error> {
    required_number(query).map(Some)
}

/// Deserializes a number of a query in [`canonical`] form.
pub fn required_number<'de, D: Deserializer<'de>, N: TryFrom<u64>>(query: D) -> Result<N, D::Error> {
    let text = String::deserialize(query)?;
    let number = canonical(&text).and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| D::Error::custom("not a number in plain digits"))
}

/// Adds `Link: rel="next"` with the address of the next page.
pub fn add_next_link(app: &App, response: &mut Response, path: &str, query: &str) {
    let next = format!("<{}/{path}?{query}>; rel=\"next\"", app.log.identity.public_url);
    if let Ok(link) = HeaderValue::from_str(&next) {
        response.headers_mut().insert(LINK, link);
    }
}
