//! Sessions: all entries of one session, of every type.
//!
//! Conversation records, VAP audit records and Verdicts, and execution receipts name their session. A verification receipt
//! does not: it is linked by a digest that it shares with an entry of the session, such as that of an output. A session is
//! found by its name only; two issuers that use the same name need not mean the same session.
//!
//! Not here: missing records of an audit stream (`streams`).

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use display::percent_encoded;
use http::StatusCode;
use http::header::CACHE_CONTROL;
use merkle::LeafIndex;
use registration::policy::essence;
use registration::vrf::{VRF_CBOR, VRF_JSON};
use registration::{Lookup, LookupKind};
use serde::{Deserialize, Serialize};
use store::lookup::VALUES_PER_TERM;
use store::{Order, Term};
use utoipa::{IntoParams, ToSchema};
use vap::audit::VAP_AUDIT;

use super::add_next_link;
use super::entry_page::Entries;
use super::names::behind;
use super::paging::{first_leaf, page_limit, wrong_page_query};
use super::search::found;
use crate::edge::problem::Problem;
use crate::edge::rate_limit::RequestCharge;
use crate::index::term;
use crate::limits::{SESSION_DIGESTS, SESSION_ENTRIES_A_READ, SESSION_RECEIPTS};
use crate::routes::app::App;
use crate::view::entry_view::EntryView;
use crate::view::pages::views;

/// Paging parameters of a session.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SessionPaging {
    /// List entries after this leaf; from the first when absent.
    #[serde(default, deserialize_with = "super::plain_number")]
    after: Option<u64>,
    /// How many, at most.
    #[param(minimum = 1)]
    #[serde(default, deserialize_with = "super::plain_number")]
    limit: Option<usize>,
}

impl SessionPaging {
    /// The entries after this leaf, at most so many.
    pub fn page(after: Option<u64>, limit: Option<usize>) -> Self {
        Self { after, limit }
    }
}

/// A session: a page of its entries, and counts of all of them.
#[derive(Debug, Serialize, ToSchema)]
pub struct Session {
    /// Name of the session, as its entries give it.
    pub session: String,
    /// Number of entries of the session by content type, over all pages. Erased entries are not counted.
    pub content_types: BTreeMap<String, u64>,
    /// Whether the count goes on: then asking again counts more.
    pub counting: bool,
    /// Entries that name the session, in the order of their leaves.
    pub entries: Vec<EntryView>,
    /// Verification receipts that share a digest with an entry of this page (`output_hash`), in the order of their leaves.
    pub receipts: Vec<EntryView>,
    /// Whether there may be more such receipts: `/v1/entries/{entry_id}/links` leads to them.
    pub more_receipts: bool,
    /// Streams of the audit records on this page: they show gaps and open decisions.
    pub streams: Vec<StreamReference>,
    /// Entries of this tree were searched. Later ones are found in a moment.
    pub indexed_to: u64,
}

/// A reference to an audit stream.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub struct StreamReference {
    /// The gateway whose records these are.
    pub gateway: String,
    /// The stream.
    pub stream: String,
    /// Address of the stream, with its records, gaps and open decisions.
    pub url: String,
}

/// All entries of a session, oldest first: conversation records, execution receipts, Verdicts and audit records that name
/// it, and the verification receipts that share a digest with them. `Link: rel="next"` leads on while there may be more.
/// Issuers choose the names of sessions: entries of different issuers may mean different sessions. A record of a
/// conversation that is registered by its hash is not found, as it names no session.
#[utoipa::path(
    get,
    path = "/v1/sessions/{session}",
    tag = "Log",
    params(("session" = String, Path, description = "The session, as its own documents name it, percent-encoded"), SessionPaging),
    responses(
        (status = 200, description = "The entries of the session, from the first on", body = Session, headers(("Link" = String, description = "rel=next, while there may be more"))),
        (status = 400, description = "A parameter is unknown, or its value is invalid"),
        (status = 404, description = "No entry names this session")
    )
)]
pub async fn session(
    State(app): State<App>,
    Extension(charge): Extension<RequestCharge>,
    Path(session): Path<String>,
    paging: Result<Query<SessionPaging>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(paging) = paging.map_err(wrong_page_query)?;
    let (view, next) = read(&app, &charge, session, &paging).await?;
    let path = format!("v1/sessions/{}", percent_encoded(&view.session));
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(view)).into_response();
    if let Some(next) = next {
        add_next_link(&app, &mut response, &path, &next);
    }
    Ok(response)
}

/// Reads a page of a session; returns it with the query of the next page.
pub async fn read(
    app: &App,
    charge: &RequestCharge,
    session: String,
    paging: &SessionPaging,
) -> Result<(Session, Option<String>), Problem> {
    let limit = page_limit(paging.limit, app.edge.limits.load().page)?;
    let within = first_leaf(paging.after)?..u64::MAX;
    let reached = app.index.caught_up().await?;
    let values = [(LookupKind::Session, session.as_str())];
    if app.index.first(&values, Order::OldestFirst).await?.is_none() {
        return Err(if reached.is_behind() { behind() } else { unknown() });
    }
    let tally = app.index.tally(&values).await?;
    let terms = vec![term(LookupKind::Session, &session)];
    let (Entries { entries, .. }, last) = found(app, terms, within, Order::OldestFirst, limit).await?;
    let (receipts, more_receipts) = linked_receipts(app, charge, &entries).await?;
    let view = Session {
        session,
        content_types: counted(tally.entries_by(LookupKind::ContentType)),
        counting: tally.goes_on(reached),
        streams: streams(app, &entries),
        entries,
        receipts,
        more_receipts,
        indexed_to: reached.indexed.to.get(),
    };
    Ok((view, last.map(|last| format!("after={last}&limit={limit}"))))
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "name-unknown", "Not Found", "No entry of the log names this session")
}

/// Sums counts by content type without parameters.
fn counted(by_type: BTreeMap<&str, u64>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (content_type, count) in by_type {
        *counts.entry(essence(content_type)).or_default() += count;
    }
    counts
}

/// Returns the streams of the audit records among these entries.
fn streams(app: &App, entries: &[EntryView]) -> Vec<StreamReference> {
    let url = &app.log.identity.public_url;
    let streams: BTreeSet<StreamReference> = entries
        .iter()
        .filter(|entry| entry.content_type.as_deref().is_some_and(|name| essence(name) == VAP_AUDIT))
        .filter_map(|entry| Some(StreamReference::new(url, entry.iss.as_deref()?, entry.sub.as_deref()?)))
        .collect();
    streams.into_iter().collect()
}

impl StreamReference {
    fn new(url: &str, gateway: &str, stream: &str) -> Self {
        let url = format!("{url}/v1/streams/{}/{}", percent_encoded(gateway), percent_encoded(stream));
        Self { gateway: gateway.to_owned(), stream: stream.to_owned(), url }
    }
}

/// Finds verification receipts that share a digest with an entry; the flag says whether there may be more. Each search
/// counts as a read of the client.
async fn linked_receipts(
    app: &App,
    charge: &RequestCharge,
    entries: &[EntryView],
) -> Result<(Vec<EntryView>, bool), Problem> {
    let (digests, mut more) = digests(app, entries).await?;
    let mut receipts = BTreeSet::new();
    for values in digests.chunks(VALUES_PER_TERM) {
        charge.charge()?;
        let page =
            app.index.search(of_receipts(values), 0..u64::MAX, Order::OldestFirst, SESSION_RECEIPTS).await?;
        more |= page.more_after.is_some();
        receipts.extend(page.entries);
    }
    let mut receipts: Vec<LeafIndex> = receipts.into_iter().collect();
    more |= receipts.len() > SESSION_RECEIPTS;
    receipts.truncate(SESSION_RECEIPTS);
    Ok((views(&app.log, &receipts).await?, more))
}

/// Returns the terms of a search for verification receipts with one of these digests.
fn of_receipts(digests: &[String]) -> Vec<Term> {
    let types = [VRF_CBOR, VRF_JSON].map(str::to_owned).to_vec();
    vec![
        Term { kind: LookupKind::Digest.number(), values: digests.to_vec() },
        Term { kind: LookupKind::ContentType.number(), values: types },
    ]
}

/// Reads up to [`SESSION_DIGESTS`] digests by which these entries are indexed; the flag says whether there are more.
async fn digests(app: &App, entries: &[EntryView]) -> Result<(Vec<String>, bool), Problem> {
    let entries: Vec<LeafIndex> = entries.iter().map(|entry| LeafIndex::new(entry.index)).collect();
    let is_digest = |row: &Lookup| row.kind == LookupKind::Digest;
    let mut digests = BTreeSet::new();
    for some in entries.chunks(SESSION_ENTRIES_A_READ) {
        let rows = app.index.values_of_all(some).await?;
        digests.extend(rows.into_iter().flatten().filter(is_digest).map(|row| row.value));
        if digests.len() > SESSION_DIGESTS {
            break;
        }
    }
    let more = digests.len() > SESSION_DIGESTS;
    Ok((digests.into_iter().take(SESSION_DIGESTS).collect(), more))
}
