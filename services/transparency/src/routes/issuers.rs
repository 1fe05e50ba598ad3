//! The statistics of an issuer's entries, and its chain of receipts about one agent.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use display::percent_encoded;
use http::StatusCode;
use http::header::CACHE_CONTROL;
use merkle::{EntryDigest, LeafIndex};
use registration::{GuardKind, LookupKind};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json_;
use store::{Entry, Order};
use utoipa::{IntoParams, ToSchema};

use super::add_next_link;
use super::paging::{first_leaf, wrong_page_query};
use super::search::goes_on_after;
use crate::edge::problem::Problem;
use crate::index::term;
use crate::limits::CHAIN_PAGE;
use crate::log::entry_reader::EntryReader;
use crate::log::heads::Heads;
use crate::routes::app::App;
use crate::time::rfc3339;
use crate::view::entry_facts::facts_of;

/// An issuer, as the log knows it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Issuer {
    /// The `iss` of its statements.
    pub issuer: String,
    /// How many entries are its own.
    pub entries: u64,
    /// The first of them.
    pub first_seen: Seen,
    /// The last of them.
    pub last_seen: Seen,
    /// The number of heads by each key: the `kid` in hexadecimal. Heads without one are not counted.
    pub keys: BTreeMap<String, u64>,
    /// How many are of which content type.
    pub content_types: BTreeMap<String, u64>,
    /// The tree of which this was counted.
    pub tree_size: u64,
    /// Whether the count goes on: then asking again counts more.
    pub counting: bool,
    /// Whether some values were left out because there were too many.
    pub truncated: bool,
}

/// Where and when.
#[derive(Debug, Serialize, ToSchema)]
pub struct Seen {
    /// The leaf.
    pub index: u64,
    /// When it was committed. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// An issuer: when it was first and last seen, its keys, what it registered. Erased entries are not counted.
#[utoipa::path(
    get,
    path = "/v1/issuers/{iss}",
    tag = "Log",
    params(("iss" = String, Path, description = "The iss of its statements, percent-encoded")),
    responses((status = 200, description = "The entries of this issuer", body = Issuer), (status = 404, description = "It has registered nothing"))
)]
pub async fn issuer(State(app): State<App>, Path(iss): Path<String>) -> Result<Response, Problem> {
    let issuer = read(&app, iss).await?;
    Ok(([(CACHE_CONTROL, "no-cache")], Json(issuer)).into_response())
}

/// Reads the statistics of an issuer; 404 if it has registered nothing.
pub async fn read(app: &App, iss: String) -> Result<Issuer, Problem> {
    let reached = app.index.caught_up().await?;
    let values = [(LookupKind::Issuer, iss.as_str())];
    let first = app.index.first(&values, Order::OldestFirst).await?;
    let Some((first, last)) = first.zip(app.index.first(&values, Order::NewestFirst).await?) else {
        return Err(if reached.is_behind() { super::names::behind() } else { unknown() });
    };
    let tally = app.index.tally(&values).await?;
    let by = |kind| tally.entries_by(kind).into_iter().map(|(value, n)| (value.to_owned(), n)).collect();
    Ok(Issuer {
        entries: tally.entries,
        first_seen: seen(app, first).await?,
        last_seen: seen(app, last).await?,
        keys: by(LookupKind::Key),
        content_types: by(LookupKind::ContentType),
        tree_size: tally.size,
        counting: tally.goes_on(reached),
        truncated: tally.truncated,
        issuer: iss,
    })
}

async fn seen(app: &App, leaf: LeafIndex) -> Result<Seen, Problem> {
    let head = app.log.store.head_covering(leaf).await?;
    Ok(Seen { index: leaf.get(), at: head.and_then(|head| rfc3339(head.at)) })
}

/// 404: the log has no entry of this issuer or chain.
pub fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "name-unknown", "Not Found", "The log holds no entry of this name")
}

/// Which chain, and which page of it.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichChain {
    /// The agent that the receipts are about: their `sub`.
    pub sub: String,
    /// Go on after this leaf.
    #[serde(default, deserialize_with = "super::plain_number")]
    pub after: Option<u64>,
}

/// A chain of verification receipts.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChainView {
    /// The verifier.
    pub issuer: String,
    /// Whose work.
    pub subject: String,
    /// The receipts that were found, in the order of the chain.
    pub receipts: Vec<ReceiptView>,
    /// Receipts that others name as their predecessor, and that the log does not hold.
    pub gaps: Vec<Gap>,
    /// Refused statements that claim a place which one of these receipts has.
    pub forks: Vec<Fork>,
    /// The receipts that no other one follows: exactly one, if the chain is whole. Absent when this is not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<Vec<String>>,
    /// Receipts of the issuer about this agent that stand in no chain.
    pub unchained: usize,
    /// Whether this is all of it; else `Link: rel="next"` leads on.
    pub complete: bool,
    /// Entries of this tree were searched.
    pub indexed_to: u64,
}

/// A receipt in its chain.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReceiptView {
    /// The entry.
    pub entry_id: String,
    /// The leaf.
    pub index: u64,
    /// Its place in the chain, from 0.
    pub position: u64,
    /// The entry it names as its predecessor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// Its own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<String>,
    /// The outcome; absent if only its hash is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// When it was committed. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// A receipt that is missing.
#[derive(Debug, Serialize, ToSchema)]
pub struct Gap {
    /// The ID it would have.
    pub entry_id: String,
    /// Its place in the chain.
    pub position: u64,
    /// The receipt that names it.
    pub named_by: String,
}

/// A second claim to a place of the chain.
#[derive(Debug, Serialize, ToSchema)]
pub struct Fork {
    /// The report's number at `/v1/equivocations`, which serves the statement.
    pub number: u64,
    /// The rule that it broke.
    pub rule: String,
    /// The receipt that has the place.
    pub registered: String,
    /// The statement that was refused.
    pub refused: String,
    /// When it was refused. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// An issuer's chain of verification receipts about one agent: its receipts in order, what is missing, what was refused
/// as a fork.
#[utoipa::path(
    get,
    path = "/v1/issuers/{iss}/chain",
    tag = "Log",
    params(("iss" = String, Path, description = "The iss of the receipts, percent-encoded"), WhichChain),
    responses(
        (status = 200, description = "The receipts of the chain, from the first on", body = ChainView, headers(("Link" = String, description = "rel=next, while there is more"))),
        (status = 400, description = "sub is missing, or a parameter is unknown"),
        (status = 404, description = "There is no such receipt")
    )
)]
pub async fn chain(
    State(app): State<App>,
    Path(iss): Path<String>,
    requested: Result<Query<WhichChain>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(requested) = requested.map_err(wrong_page_query)?;
    let (view, last) = read_chain(&app, iss, &requested).await?;
    let path = format!("v1/issuers/{}/chain", percent_encoded(&view.issuer));
    let query = |last: u64| format!("sub={}&after={last}", percent_encoded(&view.subject));
    let next = last.map(query);
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(view)).into_response();
    if let Some(next) = next {
        add_next_link(&app, &mut response, &path, &next);
    }
    Ok(response)
}

/// Reads a page of a chain; returns it with the leaf after which there is more.
pub async fn read_chain(
    app: &App,
    iss: String,
    requested: &WhichChain,
) -> Result<(ChainView, Option<u64>), Problem> {
    let reached = app.index.caught_up().await?;
    let start = first_leaf(requested.after)?;
    let terms = vec![term(LookupKind::Issuer, &iss), term(LookupKind::Subject, &requested.sub)];
    let within = start..u64::MAX;
    let page = app.index.search(terms, within.clone(), Order::OldestFirst, CHAIN_PAGE).await?;
    let last = goes_on_after(reached, &within, &page)?;
    let (receipts, unchained) = receipts(app, &page.entries).await?;
    let whole = requested.after.is_none() && last.is_none();
    if whole && receipts.is_empty() && unchained == 0 {
        return Err(unknown());
    }
    let view = ChainView {
        gaps: gaps(app, &receipts).await?,
        forks: forks(app, &receipts).await?,
        heads: whole.then(|| heads(&receipts)),
        receipts,
        unchained,
        complete: whole,
        issuer: iss,
        subject: requested.sub.clone(),
        indexed_to: page.indexed.to.get(),
    };
    Ok((view, last))
}

/// The receipts with a position in a chain, in its order, and the number of those without one.
async fn receipts(app: &App, leaves: &[LeafIndex]) -> Result<(Vec<ReceiptView>, usize), Problem> {
    let (mut chained, mut unchained) = (Vec::new(), 0);
    let mut heads = Heads::of(&*app.log.store);
    let mut reader = EntryReader::of(&*app.log.store, leaves);
    while let Some(entry) = reader.next().await? {
        let facts = Json_::from(facts_of(&entry));
        match ReceiptView::of(&entry, &facts) {
            Some(receipt) => {
                let head = heads.first_with(entry.index).await?;
                chained.push(ReceiptView { at: head.and_then(|head| rfc3339(head.at)), ..receipt });
            }
            None => unchained += usize::from(facts.get("receipt_id").is_some()),
        }
    }
    chained.sort_by_key(|receipt| (receipt.position, receipt.index));
    Ok((chained, unchained))
}

impl ReceiptView {
    fn of(entry: &Entry, facts: &Json_) -> Option<Self> {
        let text = |name: &str| facts.get(name).and_then(Json_::as_str).map(str::to_owned);
        Some(Self {
            position: facts.get("chain_position")?.as_u64()?,
            entry_id: entry.digest.to_string(),
            index: entry.index.get(),
            previous: text("previous"),
            receipt_id: text("receipt_id"),
            verdict: text("verdict"),
            at: None,
        })
    }
}

async fn gaps(app: &App, receipts: &[ReceiptView]) -> Result<Vec<Gap>, Problem> {
    let named: Vec<(EntryDigest, &ReceiptView)> = receipts
        .iter()
        .filter_map(|receipt| Some((receipt.previous.as_deref()?.parse().ok()?, receipt)))
        .collect();
    let digests: Vec<EntryDigest> = named.iter().map(|(digest, _)| *digest).collect();
    let found = app.log.store.find(&digests).await?;
    let is_missing =
        |digest: EntryDigest, found: &Option<store::Found>| found.is_none_or(|found| found.digest != digest);
    Ok(named
        .iter()
        .zip(&found)
        .filter(|((digest, _), found)| is_missing(*digest, found))
        .map(|((digest, receipt), _)| Gap {
            entry_id: digest.to_string(),
            position: receipt.position.saturating_sub(1),
            named_by: receipt.entry_id.clone(),
        })
        .collect())
}

async fn forks(app: &App, receipts: &[ReceiptView]) -> Result<Vec<Fork>, Problem> {
    let leaves: Vec<LeafIndex> = receipts.iter().map(|receipt| LeafIndex::new(receipt.index)).collect();
    let reports = app.log.store.reports_about(&leaves).await?;
    let fork = |kept: store::KeptReport| {
        let kind = GuardKind::of_key(&kept.report.guard.0).filter(|kind| kind.is_of_a_chain())?;
        Some(Fork {
            number: kept.number,
            rule: kind.rule().to_string(),
            registered: kept.report.registered.1.to_string(),
            refused: kept.report.refused.to_string(),
            at: rfc3339(kept.report.at),
        })
    };
    Ok(reports.into_iter().filter_map(fork).collect())
}

fn heads(receipts: &[ReceiptView]) -> Vec<String> {
    let followed: BTreeSet<&str> =
        receipts.iter().filter_map(|receipt| receipt.previous.as_deref()).collect();
    let is_head = |receipt: &&ReceiptView| !followed.contains(&*receipt.entry_id);
    receipts.iter().filter(is_head).map(|receipt| receipt.entry_id.clone()).collect()
}
