//! The log's erasures: the statements, and the state of the entries they name.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CACHE_CONTROL;
use merkle::EntryDigest;
use serde::{Deserialize, Serialize};
use store::ErasureStore;
use utoipa::{IntoParams, ToSchema};

use super::paging::wrong_page_query;
use crate::edge::problem::Problem;
use crate::limits::ERASURES_PAGE;
use crate::log::entry_reader::EntryReader;
use crate::log::erasures::{self, RegisteredErasure};
use crate::routes::app::App;

/// An erasure statement.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErasureView {
    /// Its number: erasures count from 0 without gaps.
    sequence: u64,
    /// The ID of the statement.
    entry_id: String,
    /// Its leaf.
    index: u64,
    /// Why, in words.
    reason: String,
    /// Why, as a code.
    rule: String,
    /// The time of the request, as the operator states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// The person who decided, as the operator states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    authorized_by: Option<String>,
    /// The entries it names.
    entries: Vec<String>,
}

impl ErasureView {
    fn of(found: RegisteredErasure) -> Self {
        let RegisteredErasure { erasure, index, entry } = found;
        Self {
            sequence: erasure.sequence,
            entry_id: entry.to_string(),
            index: index.get(),
            reason: erasure.reason,
            rule: erasure.rule,
            at: erasure.at,
            authorized_by: erasure.authorized_by,
            entries: erasure.entries.iter().map(EntryDigest::to_string).collect(),
        }
    }
}

/// A page of erasures.
#[derive(Debug, Serialize, ToSchema)]
pub struct Erasures {
    /// By number.
    erasures: Vec<ErasureView>,
    /// The number that the next erasure of this log has.
    next_sequence: u64,
}

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Numbers {
    /// List erasures after this number; from the first when absent.
    #[serde(default, deserialize_with = "super::plain_number")]
    after: Option<u64>,
    /// How many, at most.
    #[param(minimum = 1)]
    #[serde(default, deserialize_with = "super::plain_number")]
    limit: Option<u64>,
}

/// The log's erasures in order.
#[utoipa::path(
    get,
    path = "/v1/erasures",
    operation_id = "erasures",
    tag = "Log",
    params(Numbers),
    responses(
        (status = 200, description = "The registered erasures", body = Erasures),
        (status = 400, description = "after or limit is not a number, or limit is too large")
    )
)]
pub async fn list(
    State(app): State<App>,
    page: Result<Query<Numbers>, QueryRejection>,
) -> Result<Response, Problem> {
    let wrong =
        || Problem::malformed("page", format!("after is a number, limit one from 1 to {ERASURES_PAGE}"));
    let Query(page) = page.map_err(wrong_page_query)?;
    let limit = page.limit.unwrap_or(ERASURES_PAGE);
    let from = page.after.map_or(Some(0), |after| after.checked_add(1)).ok_or_else(wrong)?;
    let to = from.checked_add(limit).filter(|_| (1..=ERASURES_PAGE).contains(&limit)).ok_or_else(wrong)?;
    let store = &*app.log.store;
    let next_sequence = erasures::count(store).await?;
    let found = erasures::registered(store, from..to).await?;
    let erasures = found.into_iter().map(ErasureView::of).collect();
    Ok(([(CACHE_CONTROL, "no-cache")], Json(Erasures { erasures, next_sequence })).into_response())
}

/// How far an erasure is.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErasureProgress {
    #[serde(flatten)]
    erasure: ErasureView,
    /// Entries whose bytes are gone.
    erased: Vec<String>,
    /// Entries that a hold keeps.
    held: Vec<String>,
    /// Entries that are erased at the next turn.
    pending: Vec<String>,
}

/// One erasure, with the state of the entries that it names.
#[utoipa::path(
    get,
    path = "/v1/erasures/{sequence}",
    tag = "Log",
    params(("sequence" = u64, Path, description = "The erasure's number")),
    responses(
        (status = 200, description = "The erasure, and how far it is carried out", body = ErasureProgress),
        (status = 400, description = "Invalid locator"),
        (status = 404, description = "Not Found")
    )
)]
pub async fn one(
    State(app): State<App>,
    sequence: Result<Path<u64>, PathRejection>,
) -> Result<Response, Problem> {
    let wrong = || {
        let detail = "An erasure is named by its number";
        Problem::new(StatusCode::BAD_REQUEST, "locator-invalid", "Invalid locator", detail)
    };
    let Path(sequence) = sequence.map_err(|_| wrong())?;
    let end = sequence.checked_add(1).ok_or_else(wrong)?;
    let store = &*app.log.store;
    let found = erasures::registered(store, sequence..end).await?.into_iter().next().ok_or_else(|| {
        let detail = format!("This log has no erasure {sequence}");
        Problem::new(StatusCode::NOT_FOUND, "erasure-unknown", "Not Found", detail)
    })?;
    Ok(([(CACHE_CONTROL, "no-cache")], Json(progress(store, found).await?)).into_response())
}

async fn progress(store: &dyn ErasureStore, found: RegisteredErasure) -> Result<ErasureProgress, Problem> {
    let leaves = erasures::erased_leaves(store, &found.erasure).await?;
    let holds = store.held(&leaves).await?;
    let (mut erased, mut held, mut pending) = (Vec::new(), Vec::new(), Vec::new());
    let mut reader = EntryReader::of(store, &leaves);
    while let Some(entry) = reader.next().await? {
        let list = match entry.statement {
            None => &mut erased,
            Some(_) if holds.contains(&entry.index) => &mut held,
            Some(_) => &mut pending,
        };
        list.push(entry.digest.to_string());
    }
    Ok(ErasureProgress { erasure: ErasureView::of(found), erased, held, pending })
}
