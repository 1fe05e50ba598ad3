//! List of the audit streams of a gateway, each with the first record that the log has of it.
//!
//! A stream is listed once any of its records is on the log, with or without record 0: an auditor looks for streams that
//! lack their beginning. The list needs no rows of its own in the lookup index, which has every stream as a value.
//!
//! Not here: missing records within a stream (`streams`).

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use display::percent_encoded;
use http::header::CACHE_CONTROL;
use merkle::LeafIndex;
use registration::LookupKind;
use registration::vap::{stream_key, stream_key_prefix};
use serde::{Deserialize, Serialize};
use store::{Order, Term};
use utoipa::{IntoParams, ToSchema};

use super::add_next_link;
use super::names::behind;
use super::paging::{page_limit, wrong_page_query};
use super::streams::{RecordView, record_of, unknown};
use crate::edge::problem::Problem;
use crate::edge::rate_limit::RequestCharge;
use crate::limits::STREAM_RECORDS_A_READ;
use crate::log::heads::Heads;
use crate::routes::app::App;
use crate::time::rfc3339;

/// Paging parameters of a list of streams.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamPaging {
    /// List the streams after this one; from the first when absent.
    after: Option<String>,
    /// How many, at most.
    #[param(minimum = 1)]
    #[serde(default, deserialize_with = "super::plain_number")]
    limit: Option<usize>,
}

/// A page of the audit streams of a gateway.
#[derive(Debug, Serialize, ToSchema)]
pub struct Streams {
    /// The gateway whose records these are.
    gateway: String,
    /// Its streams, in a fixed order: roughly that of their names.
    streams: Vec<ListedStream>,
    /// Whether streams may be missing on this page: the newest entries are not indexed yet.
    truncated: bool,
    /// Entries of this tree were searched.
    indexed_to: u64,
}

/// An audit stream of a gateway.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedStream {
    /// The stream: a session, or `unbound:` and an instance.
    stream: String,
    /// The record with the lowest leaf that was not erased. Its `seq` is 0 unless the beginning of the stream is missing,
    /// was erased, or was registered late.
    first: RecordView,
    /// The time of the commit of that record. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

/// The audit streams of a gateway, each with the first record that the log has of it. A stream is listed if the log holds
/// any record of it, even if others are missing; a stream whose records were all erased is not listed. Streams of a gateway
/// whose name takes more than 400 bytes are not listed, but are read by their own names. `Link: rel="next"` leads on while
/// there may be more.
#[utoipa::path(
    get,
    path = "/v1/streams/{gateway}",
    tag = "Log",
    params(("gateway" = String, Path, description = "The iss of the records, percent-encoded"), StreamPaging),
    responses(
        (status = 200, description = "The streams of the gateway, from the first on", body = Streams, headers(("Link" = String, description = "rel=next, while there may be more"))),
        (status = 400, description = "A parameter is unknown, or its value is invalid"),
        (status = 404, description = "The log has no record of this gateway")
    )
)]
pub async fn streams(
    State(app): State<App>,
    Extension(charge): Extension<RequestCharge>,
    Path(gateway): Path<String>,
    paging: Result<Query<StreamPaging>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(paging) = paging.map_err(wrong_page_query)?;
    let limit = page_limit(paging.limit, app.edge.limits.load().page)?;
    let reached = app.index.caught_up().await?;
    let (streams, more) = listed(&app, &charge, &gateway, paging.after.as_deref(), limit).await?;
    if streams.is_empty() && (more || paging.after.is_none()) {
        return Err(if reached.is_behind() { behind() } else { unknown() });
    }
    let next = streams.last().filter(|_| more).map(|last| next_page(&gateway, &last.stream, limit));
    let indexed_to = reached.indexed.to.get();
    let page = Streams { gateway, streams, truncated: reached.is_behind(), indexed_to };
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(page)).into_response();
    if let Some((path, query)) = next {
        add_next_link(&app, &mut response, &path, &query);
    }
    Ok(response)
}

fn next_page(gateway: &str, last: &str, limit: usize) -> (String, String) {
    let path = format!("v1/streams/{}", percent_encoded(gateway));
    (path, format!("after={}&limit={limit}", percent_encoded(last)))
}

/// Reads a page of streams; the flag says whether there are more. A long page counts as several reads of the client.
async fn listed(
    app: &App,
    charge: &RequestCharge,
    gateway: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<ListedStream>, bool), Problem> {
    let after =
        after.map(|after| registration::Lookup::new(LookupKind::Stream, &stream_key(gateway, after)).value);
    let prefix = stream_key_prefix(gateway);
    let mut keys = app.index.values(LookupKind::Stream, &prefix, after.as_deref(), limit + 1).await?;
    let more = keys.len() > limit;
    keys.truncate(limit);
    for _ in 0..keys.len() / STREAM_RECORDS_A_READ {
        charge.charge()?;
    }
    let mut streams = Vec::with_capacity(keys.len());
    for key in keys {
        streams.extend(stream_of(app, key).await?);
    }
    add_commit_times(app, &mut streams).await?;
    Ok((streams, more))
}

/// Adds the commit time of its first record to each stream.
async fn add_commit_times(app: &App, streams: &mut [ListedStream]) -> Result<(), Problem> {
    let mut by_leaf: Vec<&mut ListedStream> = streams.iter_mut().collect();
    by_leaf.sort_by_key(|stream| stream.first.index);
    let mut heads = Heads::of(&*app.log.store);
    for stream in by_leaf {
        let head = heads.first_with(LeafIndex::new(stream.first.index)).await?;
        stream.at = head.and_then(|head| rfc3339(head.at));
    }
    Ok(())
}

/// Reads a stream by its key in the index, without its commit time; `None` if none of its records is indexed again after a drop.
async fn stream_of(app: &App, key: String) -> Result<Option<ListedStream>, Problem> {
    let terms = vec![Term::exactly(LookupKind::Stream.number(), key)];
    let page = app.index.search(terms, 0..u64::MAX, Order::OldestFirst, 1).await?;
    let Some(leaf) = page.entries.first() else { return Ok(None) };
    let entry = app.log.store.entry(*leaf).await?;
    let found = entry.and_then(|entry| record_of(&entry));
    Ok(found.map(|(_, stream, first)| ListedStream { stream, first, at: None }))
}
