//! Names of entries that are not entry IDs: what the documents' own flows ask `/entries/` for.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, LOCATION};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use merkle::EntryDigest;
use registration::LookupKind;
use uuid::Uuid;

use crate::app::App;
use crate::index::term;
use crate::limits::NAMED_ENTRIES;
use crate::problem::Problem;

/// An entry ID, or a name that the statement itself gives to what it says.
pub enum Locator {
    /// 64 lowercase hex digits.
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

/// 307 to the one entry of this name; 404 if there is none, 400 naming them if there are several.
pub async fn named(app: &App, kind: LookupKind, name: &str) -> Result<Response, Problem> {
    let reached = app.index.caught_up().await?;
    let page = app.index.search(vec![term(kind, name)], 0..u64::MAX, NAMED_ENTRIES).await?;
    let mut digests = Vec::with_capacity(page.entries.len());
    for leaf in page.entries {
        digests.extend(app.log.store.entry(leaf).await?.map(|entry| entry.digest));
    }
    match digests[..] {
        // Neither "none" nor "one" can be said by an index that is behind.
        [] | [_] if reached.is_behind() => Err(behind()),
        [] => Err(Problem::unknown_entry(name)),
        [digest] => Ok(redirect(app.log.location(digest))),
        _ => Err(several(&digests, page.more_after.is_some())),
    }
}

fn redirect(location: String) -> Response {
    let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
    let headers = response.headers_mut();
    // A second entry may take the name.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(location) = HeaderValue::from_str(&location) {
        headers.insert(LOCATION, location);
    }
    response
}

fn several(digests: &[EntryDigest], more: bool) -> Problem {
    let count = if more { "more than" } else { "exactly" };
    let detail = format!("This names {count} {} entries; ask for one by its entry ID", digests.len());
    Problem::new(StatusCode::BAD_REQUEST, "locator-ambiguous", "Invalid locator", detail)
        .among(digests.iter().map(ToString::to_string).collect())
}

/// 503: the index does not know the newest entries yet.
pub fn behind() -> Problem {
    let detail = "The newest entries are not indexed yet; the answer could be another one in a moment";
    Problem::busy("index-behind", detail, 1)
}
