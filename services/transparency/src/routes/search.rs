//! Listing and searching entries. Pages follow leaf indices, so they are stable while the log grows.
//!
//! A client finds the entries that it registered before: a search waits a moment for the index, and its response states
//! how far the index was.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use std::ops::Range;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use registration::LookupKind;
use serde::{Deserialize, Serialize};
use store::{LogReader, Page, StoreError, Term};
use utoipa::{IntoParams, ToSchema};

use super::names::behind;
use super::{lead_on, wrong_query};
use crate::edge::problem::Problem;
use crate::index::{IndexProgress, term};
use crate::routes::app::App;
use crate::view::entry_view::EntryView;
use crate::view::pages::{DEFAULT_PAGE, PAGE_BYTES, read};

/// Which entries: all that is named must be true of one. Without any of the values, every entry is listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EntryQuery {
    /// List entries after this leaf; from the first when absent.
    #[serde(default, deserialize_with = "super::plain_number")]
    after: Option<u64>,
    /// How many, at most.
    limit: Option<usize>,
    /// Committed at this time or later: RFC 3339, or Unix seconds.
    from_time: Option<String>,
    /// Committed before this time.
    to_time: Option<String>,
    /// What must be true of them.
    #[serde(flatten)]
    #[param(ignore)]
    values: EntryValues,
}

/// What entries are found by: everything that is named must be true of one.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EntryValues {
    /// The `receipt_id` of a VRF receipt.
    receipt_id: Option<String>,
    /// The `aer_id` of an execution receipt.
    aer_id: Option<String>,
    /// A session, as its own document names it.
    session: Option<String>,
    /// The agent that acted.
    agent: Option<String>,
    /// `iss`.
    issuer: Option<String>,
    /// `sub`.
    subject: Option<String>,
    /// The content type, or that of the hashed content.
    content_type: Option<String>,
    /// A verdict or decision.
    verdict: Option<String>,
    /// A tool that was called.
    tool: Option<String>,
    /// SHA-256 of the payload: 64 hex digits, with or without `sha256:`.
    payload_digest: Option<String>,
    /// SHA-256 of anything that an entry speaks of: an output, a call's input, a payload.
    digest: Option<String>,
    /// A call within a session.
    call_id: Option<String>,
    /// The kind of the verified task.
    task_type: Option<String>,
    /// The tier of a verification.
    tier: Option<String>,
}

impl EntryValues {
    /// The given values, with their parameter's name and their kind in the index.
    fn values(&self) -> impl Iterator<Item = (&'static str, LookupKind, &str)> {
        let all = [
            ("receipt_id", LookupKind::ReceiptId, &self.receipt_id),
            ("aer_id", LookupKind::AerId, &self.aer_id),
            ("session", LookupKind::Session, &self.session),
            ("agent", LookupKind::Agent, &self.agent),
            ("issuer", LookupKind::Issuer, &self.issuer),
            ("subject", LookupKind::Subject, &self.subject),
            ("content_type", LookupKind::ContentType, &self.content_type),
            ("verdict", LookupKind::Verdict, &self.verdict),
            ("tool", LookupKind::Tool, &self.tool),
            ("payload_digest", LookupKind::PayloadDigest, &self.payload_digest),
            ("digest", LookupKind::Digest, &self.digest),
            ("call_id", LookupKind::CallId, &self.call_id),
            ("task_type", LookupKind::TaskType, &self.task_type),
            ("tier", LookupKind::Tier, &self.tier),
        ];
        all.into_iter().filter_map(|(name, kind, value)| Some((name, kind, value.as_deref()?)))
    }

    /// The terms for the index; 400 if a digest is malformed.
    pub fn terms(&self) -> Result<Vec<Term>, Problem> {
        self.values()
            .map(|(name, kind, value)| match kind {
                LookupKind::PayloadDigest | LookupKind::Digest => Ok(term(kind, &digest(name, value)?)),
                _ => Ok(term(kind, value)),
            })
            .collect()
    }
}

impl EntryQuery {
    /// The range of leaves to search.
    async fn within(&self, store: &dyn LogReader) -> Result<Range<u64>, Problem> {
        let mut within = first_leaf(self.after)?..u64::MAX;
        if let Some(from) = &self.from_time {
            within.start = within.start.max(first_leaf_at(store, time("from_time", from)?).await?);
        }
        if let Some(to) = &self.to_time {
            within.end = first_leaf_at(store, time("to_time", to)?).await?;
        }
        Ok(within)
    }

    /// The query of the page after this leaf.
    fn next(&self, last: u64, limit: usize) -> String {
        let mut query = format!("after={last}&limit={limit}");
        let times = [("from_time", self.from_time.as_deref()), ("to_time", self.to_time.as_deref())];
        let times = times.into_iter().filter_map(|(name, value)| Some((name, value?)));
        for (name, value) in self.values.values().map(|(name, _, value)| (name, value)).chain(times) {
            query.push_str(&format!("&{name}={}", percent_encoded(value)));
        }
        query
    }
}

/// A page of entries.
#[derive(Debug, Serialize, ToSchema)]
pub struct Entries {
    /// In the order of their leaves.
    pub entries: Vec<EntryView>,
    /// Of a search: entries of this tree were searched. Later ones are found in a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed_to: Option<u64>,
}

/// A page of entries, oldest first; with values, only of those that say all of them. `Link: rel="next"` leads on while
/// there may be more: a search that looked at many entries in vain answers a short page and leads on.
#[utoipa::path(
    get,
    path = "/v1/entries",
    operation_id = "entries",
    tag = "Log",
    params(EntryQuery, EntryValues),
    responses(
        (status = 200, description = "The entries that match, from the first on", body = Entries, headers(("Link" = String, description = "rel=next, while there may be more"))),
        (status = 400, description = "A parameter is unknown, or its value is none")
    )
)]
pub async fn list(
    State(app): State<App>,
    search: Result<Query<EntryQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(search) = search.map_err(|refused| wrong_page(wrong_query(&refused)))?;
    let limit = page_limit(search.limit, app.edge.limits.load().page)?;
    let terms = search.values.terms()?;
    let within = search.within(&*app.log.store).await?;
    let (page, last) = match terms.is_empty() {
        true => every(&app, within, limit).await?,
        false => found(&app, terms, within, limit).await?,
    };
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(page)).into_response();
    if let Some(last) = last {
        lead_on(&app, &mut response, "v1/entries", &search.next(last, limit));
    }
    Ok(response)
}

async fn every(app: &App, within: Range<u64>, limit: usize) -> Result<(Entries, Option<u64>), Problem> {
    let (entries, more) = read(&app.log, within, limit).await?;
    let last = entries.last().map(EntryView::index).filter(|_| more);
    Ok((Entries { entries, indexed_to: None }, last))
}

/// Finds a page of the entries that match all terms, and the leaf after which there may be more.
pub async fn found(
    app: &App,
    terms: Vec<Term>,
    within: Range<u64>,
    limit: usize,
) -> Result<(Entries, Option<u64>), Problem> {
    let reached = app.index.caught_up().await?;
    let page = app.index.search(terms, within.clone(), limit).await?;
    let mut last = goes_on_after(reached, &within, &page)?;
    let (mut entries, mut bytes) = (Vec::with_capacity(page.entries.len()), 0);
    for (leaf, left) in page.entries.iter().zip((0..page.entries.len()).rev()) {
        let Some(entry) = app.log.store.entry(*leaf).await? else { continue };
        bytes += entry.statement.as_ref().map_or(0, bytes::Bytes::len);
        entries.push(EntryView::of(&entry, None));
        if bytes > PAGE_BYTES && left > 0 {
            last = Some(leaf.get());
            break;
        }
    }
    Ok((Entries { entries, indexed_to: Some(page.indexed.to.get()) }, last))
}

/// The leaf after which a search of this range continues, or `None` if the page is complete. A page is incomplete if
/// more entries match, or the index ends before the range does. An index that ends before the range begins is an error
/// (503 `index-behind`).
pub fn goes_on_after(
    reached: IndexProgress,
    within: &Range<u64>,
    page: &Page,
) -> Result<Option<u64>, Problem> {
    let indexed = page.indexed.to.get();
    let end = within.end.min(reached.committed.get());
    match page.more_after {
        Some(leaf) => Ok(Some(leaf.get())),
        None if indexed >= end || within.start >= end => Ok(None),
        None if indexed > within.start => Ok(Some(indexed - 1)),
        None => Err(behind()),
    }
}

/// Returns the size of a page: the requested one, or the default.
pub fn page_limit(requested: Option<usize>, most: usize) -> Result<usize, Problem> {
    let limit = requested.unwrap_or(DEFAULT_PAGE.min(most));
    match (1..=most).contains(&limit) {
        true => Ok(limit),
        false => Err(wrong_page(format!("limit is a number from 1 to {most}"))),
    }
}

/// Returns the first leaf of the page that follows a leaf; 0 without one.
pub fn first_leaf(after: Option<u64>) -> Result<u64, Problem> {
    let past = || wrong_page("after is past every leaf".into());
    after.map_or(Ok(0), |after| after.checked_add(1).ok_or_else(past))
}

/// The first leaf committed at this time or later; `u64::MAX` if there is none yet.
async fn first_leaf_at(store: &dyn LogReader, time: u64) -> Result<u64, StoreError> {
    let (mut low, mut high) = (1, store.head().await?.batch);
    let mut first = u64::MAX;
    while low <= high {
        let middle = low + (high - low) / 2;
        // Read the batch and the one before, whose size is the first leaf of this one.
        let heads = store.heads(middle.saturating_sub(1).max(1), 2).await?;
        let Some(head) = heads.iter().find(|head| head.batch == middle) else { break };
        if head.at >= time {
            first = heads.iter().find(|head| head.batch + 1 == middle).map_or(0, |head| head.size.get());
            high = middle - 1;
        } else {
            low = middle + 1;
        }
    }
    Ok(first)
}

fn time(name: &'static str, text: &str) -> Result<u64, Problem> {
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => Some(seconds),
        Err(_) => text.parse::<jiff::Timestamp>().ok().and_then(|time| u64::try_from(time.as_second()).ok()),
    };
    seconds.ok_or_else(|| {
        wrong(format!("{name} is a time as in RFC 3339 (2026-01-31T12:00:00Z), or Unix seconds"))
    })
}

fn digest(name: &'static str, text: &str) -> Result<String, Problem> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    match hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        true => Ok(format!("sha256:{hex}")),
        false => Err(wrong(format!("{name} is a SHA-256: 64 lowercase hex digits"))),
    }
}

fn wrong(detail: String) -> Problem {
    Problem::malformed("search", detail)
}

/// Returns the 400 for a wrong parameter of a page.
pub fn wrong_page(detail: String) -> Problem {
    Problem::malformed("page", crate::edge::problem::shortened_to(&detail, 200))
}

/// Percent-encodes all bytes but the unreserved characters of RFC 3986.
pub fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use merkle::{LeafIndex, TreeSize};
    use store::Indexed;

    use super::*;

    /// Calls `goes_on_after` for a log of 6000 entries.
    fn goes_on(within: Range<u64>, indexed: u64, more_after: Option<u64>) -> Result<Option<u64>, Problem> {
        let indexed = Indexed { form: 1, to: TreeSize::new(indexed) };
        let reached = IndexProgress { indexed, committed: TreeSize::new(6000) };
        let page = Page { entries: Vec::new(), more_after: more_after.map(LeafIndex::new), indexed };
        goes_on_after(reached, &within, &page)
    }

    #[test]
    fn a_page_is_the_last_one_only_if_all_that_was_asked_for_is_indexed() {
        let all = 0..u64::MAX;
        assert_eq!(goes_on(all.clone(), 6000, None).unwrap(), None);
        assert_eq!(goes_on(all.clone(), 6000, Some(7)).unwrap(), Some(7));
        assert_eq!(goes_on(all.clone(), 300, None).unwrap(), Some(299));
        assert_eq!(goes_on(all.clone(), 300, Some(7)).unwrap(), Some(7));
        assert_eq!(goes_on(0..200, 300, None).unwrap(), None, "what is behind 200 was not asked for");
        assert_eq!(goes_on(6000..u64::MAX, 300, None).unwrap(), None, "there is nothing behind the end");
        for within in [all, 300..u64::MAX, 5001..u64::MAX] {
            let start = within.start;
            assert!(goes_on(within, start.min(300), None).is_err(), "from {start} on nothing is indexed");
        }
    }
}
