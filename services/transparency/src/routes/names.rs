//! Names of entries other than entry IDs, for `GET /entries/{entry_id}`.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, LINK, LOCATION};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use merkle::EntryDigest;
use registration::LookupKind;
use serde::Deserialize;
use store::Order;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::edge::problem::Problem;
use crate::index::term;
use crate::limits::NAMED_ENTRIES;
use crate::log::entry_reader::EntryReader;
use crate::log::state::Log;
use crate::routes::app::App;

/// An entry ID, or a name from the statement itself.
pub enum Locator {
    /// An entry ID: 64 lowercase hex digits.
    Id(EntryDigest),
    /// A VRF `receipt_id` or an AgentROA `aer_id`.
    Name(LookupKind, String),
}

impl Locator {
    fn read(text: &str) -> Option<Self> {
        if let Ok(digest) = EntryDigest::from_str(text) {
            return Some(Self::Id(digest));
        }
        if Uuid::try_parse(text).is_ok_and(|uuid| uuid.hyphenated().to_string() == text) {
            return Some(Self::Name(LookupKind::ReceiptId, text.to_owned()));
        }
        let digits = text.strip_prefix("aer:")?;
        let is_id =
            digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_id.then(|| Self::Name(LookupKind::AerId, text.to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Locator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) =
            Path::<String>::from_request_parts(parts, state).await.map_err(|_| Problem::invalid_locator())?;
        Self::read(&text).ok_or_else(Problem::invalid_locator)
    }
}

/// The issuer whose entry is meant.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NamedBy {
    /// The `iss` of the entry, where the path is a name: only this issuer's entry is meant.
    issuer: Option<String>,
}

/// Responds with 307 to the first entry of this name, with `Link: rel="alternate"` to the others; 404 if there is none.
///
/// A name is unique for its issuer only. The first entry keeps the name, so another issuer cannot take it over by using
/// it again.
pub async fn named(app: &App, kind: LookupKind, name: &str, by: NamedBy) -> Result<Response, Problem> {
    let reached = app.index.caught_up().await?;
    let issuer = by.issuer.map(|iss| term(LookupKind::Issuer, &iss));
    let terms = std::iter::once(term(kind, name)).chain(issuer).collect();
    let page = app.index.search(terms, 0..u64::MAX, Order::OldestFirst, NAMED_ENTRIES).await?;
    let mut digests = Vec::with_capacity(page.entries.len());
    let mut reader = EntryReader::of(&*app.log.store, &page.entries);
    while let Some(entry) = reader.next().await? {
        digests.push(entry.digest);
    }
    match digests.split_first() {
        None if reached.is_behind() => Err(behind()),
        None => Err(Problem::unknown_entry(name)),
        Some((first, others)) => Ok(redirect(&app.log, *first, others)),
    }
}

fn redirect(log: &Log, first: EntryDigest, others: &[EntryDigest]) -> Response {
    let alternates = others.iter().map(|digest| format!("<{}>; rel=\"alternate\"", log.location(*digest)));
    let values = std::iter::once((LOCATION, log.location(first))).chain(alternates.map(|link| (LINK, link)));
    let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
    let headers = response.headers_mut();
    // Another entry may use the name later, and the first one may be erased.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    for (name, value) in values {
        headers.extend(HeaderValue::from_str(&value).ok().map(|value| (name, value)));
    }
    response
}

/// 503 `index-behind`: the newest entries are not indexed yet.
pub fn behind() -> Problem {
    let detail = "The newest entries are not indexed yet; the answer could be another one in a moment";
    Problem::busy("index-behind", detail, 1)
}
