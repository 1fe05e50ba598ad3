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
use store::{Order, Page, Term};

use super::entry_page::{BlindEntry, Entries};
use super::entry_query::{EntryPrefixes, EntryQuery, EntryValues};
use super::names::behind;
use super::paging::wrong_page_query;
use super::{add_next_link, proven_search};
use crate::edge::problem::Problem;
use crate::index::IndexProgress;
use crate::limits::BLIND_LEAVES;
use crate::routes::app::App;
use crate::view::pages::{read, read_leaves};

/// A page of entries, oldest first unless `order=newest`; with values, only of those that have all of them. `Link: rel="next"`
/// leads on while there may be more: a search that looked at many entries in vain answers a short page and leads on. With
/// `proof=1` the page has a proof that it is complete, and ends at the newest head of the search index.
#[utoipa::path(
    get,
    path = "/v1/entries",
    operation_id = "entries",
    tag = "Log",
    params(EntryQuery, EntryValues, EntryPrefixes),
    responses(
        (status = 200, description = "The entries that match, in the given order", body = Entries, headers(("Link" = String, description = "rel=next, while there may be more"))),
        (status = 400, description = "A parameter is unknown, its value is invalid, too many values begin with a prefix, or the search cannot be proven"),
        (status = 404, description = "With proof=1: the log has no heads of its search index"),
        (status = 503, description = "The index is behind; with proof=1: there is no head of the index yet, or entries were erased since. Retry-After gives the time to wait")
    )
)]
pub async fn list(
    State(app): State<App>,
    search: Result<Query<EntryQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(search) = search.map_err(wrong_page_query)?;
    let (page, next) = match search.wants_proof()? {
        true => proven_search::page(&app, &search).await?,
        false => page(&app, &search).await?,
    };
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(page)).into_response();
    if let Some(next) = next {
        add_next_link(&app, &mut response, "v1/entries", &next);
    }
    Ok(response)
}

/// Reads a page of entries; returns it with the query of the next page.
pub async fn page(app: &App, search: &EntryQuery) -> Result<(Entries, Option<String>), Problem> {
    let limit = search.limit(app.edge.limits.load().page)?;
    let terms = search.terms(&app.index).await?;
    let within = search.within(&*app.log.store).await?;
    let (page, last) = match terms.is_empty() {
        true => every(app, within, search.order(), limit).await?,
        false => found(app, terms, within, search.order(), limit).await?,
    };
    Ok((page, last.map(|last| search.next(last, limit))))
}

async fn every(
    app: &App,
    within: Range<u64>,
    order: Order,
    limit: usize,
) -> Result<(Entries, Option<u64>), Problem> {
    let (entries, more) = read(&app.log, within, order, limit).await?;
    let last = entries.last().map(|entry| entry.index).filter(|_| more);
    Ok((Entries::of(entries, None), last))
}

/// Finds a page of the entries that match all terms, and the leaf after which there may be more.
pub async fn found(
    app: &App,
    terms: Vec<Term>,
    within: Range<u64>,
    order: Order,
    limit: usize,
) -> Result<(Entries, Option<u64>), Problem> {
    let reached = app.index.caught_up().await?;
    let query = store::Query { terms, within: within.clone(), order, limit };
    let (page, blind) = app.index.search_and_list_blind(&query).await?;
    let mut last = match order {
        Order::OldestFirst => goes_on_after(reached, &within, &page)?,
        Order::NewestFirst => goes_on_before(reached, &within, &page)?,
    };
    let (entries, taken) = read_leaves(&app.log, &page.entries).await?;
    if taken < page.entries.len() {
        last = page.entries[..taken].last().map(|leaf| leaf.get());
    }
    let found = Entries::of(entries, Some(page.indexed.to.get()));
    Ok((Entries { blind: BlindEntry::list(&blind), more_blind: blind.len() == BLIND_LEAVES, ..found }, last))
}

/// The leaf before which a search with the newest entries first continues, or `None` if the page is complete. Entries
/// that are not indexed yet are missing at its beginning; if none of the range is indexed, the error is 503
/// `index-behind`.
fn goes_on_before(reached: IndexProgress, within: &Range<u64>, page: &Page) -> Result<Option<u64>, Problem> {
    let end = within.end.min(reached.committed.get());
    match page.more_after {
        None if page.indexed.to.get() <= within.start && within.start < end => Err(behind()),
        last => Ok(last.map(|leaf| leaf.get())),
    }
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
