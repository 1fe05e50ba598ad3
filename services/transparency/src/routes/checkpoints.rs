//! Earlier checkpoints: the tree size of every receipt is that of one of them.
//!
//! `/checkpoint` omits heads without a quorum of cosignatures; this resource lists every signed head, with the
//! cosignatures it has.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, StatusCode};
use merkle::TreeSize;
use serde::{Deserialize, Serialize};
use store::SignatureKind;
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;
use utoipa::{IntoParams, ToSchema};

use super::tlog::{NOTE, cached, published, tag};
use super::{canonical, lead_on};
use crate::edge::problem::{Problem, shortened};
use crate::limits::{CHECKPOINTS_DEFAULT, CHECKPOINTS_PAGE};
use crate::routes::app::App;
use crate::witnessing::with_cosignatures;

/// `Cache-Control` of a checkpoint: witnesses may still add cosignatures.
const CACHED: &str = "public, max-age=60";

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CheckpointPaging {
    /// List checkpoints of larger trees than this; from the first when absent.
    #[serde(default, deserialize_with = "super::plain_number")]
    after: Option<u64>,
    /// How many, at most: 1 to 100, 25 unless given.
    limit: Option<usize>,
}

/// A page of checkpoints.
#[derive(Debug, Serialize, ToSchema)]
pub struct Checkpoints {
    /// In order of size.
    checkpoints: Vec<CheckpointView>,
}

/// A tree head that was signed.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckpointView {
    /// Leaves of the tree.
    size: u64,
    /// Its root, hex.
    root: String,
    /// The signed note (C2SP tlog-checkpoint), with the cosignatures that it has.
    note: String,
}

/// Every checkpoint that was signed, by size. `Link: rel="next"` leads on while there may be more.
#[utoipa::path(
    get,
    path = "/v1/checkpoints",
    tag = "C2SP",
    params(CheckpointPaging),
    responses(
        (
            status = 200,
            description = "The signed checkpoints, by size",
            body = Checkpoints,
            headers(("Link" = String, description = "rel=next, while there may be more"))
        ),
        (status = 400, description = "after or limit is no number, or limit is too large")
    )
)]
pub async fn checkpoints(
    State(app): State<App>,
    page: Result<Query<CheckpointPaging>, QueryRejection>,
) -> Result<Response, Problem> {
    let wrong = || {
        let detail = format!("after is a tree size, limit a number from 1 to {CHECKPOINTS_PAGE}");
        Problem::malformed("page", detail)
    };
    let Query(page) = page.map_err(|_| wrong())?;
    let limit = page.limit.unwrap_or(CHECKPOINTS_DEFAULT);
    if !(1..=CHECKPOINTS_PAGE).contains(&limit) {
        return Err(wrong());
    }
    let sizes = signed_sizes(&app, page.after.map(TreeSize::new), limit).await?;
    let mut checkpoints = Vec::with_capacity(sizes.len());
    for size in &sizes {
        checkpoints.extend(view(&app, *size).await?);
    }
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(Checkpoints { checkpoints })).into_response();
    if let Some(last) = sizes.last().filter(|_| sizes.len() == limit) {
        lead_on(&app, &mut response, "v1/checkpoints", &format!("after={last}&limit={limit}"));
    }
    Ok(response)
}

/// The checkpoint of one size: a signed note with the cosignatures that it has.
#[utoipa::path(
    get,
    path = "/v1/checkpoints/{size}",
    operation_id = "checkpoint_of_size",
    tag = "C2SP",
    params(("size" = u64, Path, description = "The tree size: that of any receipt")),
    responses(
        (status = 200, description = "Origin, tree size and root, signed with the checkpoint key and by witnesses", body = String, content_type = "text/plain; charset=utf-8"),
        (status = 304, description = "Still the checkpoint that If-None-Match names"),
        (status = 400, description = "The size is no number"),
        (status = 404, description = "No tree of this size was signed")
    )
)]
pub async fn checkpoint(
    State(app): State<App>,
    Path(size): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wrong = || Problem::malformed("size", format!("{} is no tree size", shortened(&size)));
    let size = TreeSize::new(canonical(&size).ok_or_else(wrong)?);
    let note: Bytes = of_size(&app, size).await?.to_string().into();
    Ok(cached(&headers, tag(size, &note), NOTE, CACHED, note))
}

/// The checkpoint of exactly this size, with its cosignatures; 404 `size-unsigned` if there is none.
pub async fn of_size(app: &App, size: TreeSize) -> Result<Note, Problem> {
    let note = with_cosignatures(&*app.log.store, size).await?.or_else(|| just_published(app, size));
    match note {
        Some(note) => Ok(note),
        None => Err(unsigned(app, size).await),
    }
}

/// The problem 404 `size-unsigned`, with the reason why the tree of this size has no signature.
pub async fn unsigned(app: &App, size: TreeSize) -> Problem {
    let newest = published(app).await.map_or(size, |(newest, _)| newest);
    let detail = match size {
        TreeSize::EMPTY => "The empty tree is never signed: every tree begins with it".to_owned(),
        _ if size > newest => {
            format!("No tree of that size is signed yet; the newest has {newest} leaves")
        }
        _ => format!("The tree of {size} leaves was never signed: it is within a batch"),
    };
    Problem::new(StatusCode::NOT_FOUND, "size-unsigned", "Not Found", detail)
}

/// The newest checkpoint from memory: receipts under it are issued before the database has it.
fn just_published(app: &App, size: TreeSize) -> Option<Note> {
    let newest = app.log.sequencer.published().filter(|head| head.head.size == size)?;
    Note::parse(&newest.signature(SignatureKind::Checkpoint)?.bytes).ok()
}

/// Sizes with a stored checkpoint. Each head has at least one other signature, for receipts, so twice as many
/// signatures are read.
async fn signed_sizes(
    app: &App,
    mut after: Option<TreeSize>,
    limit: usize,
) -> Result<Vec<TreeSize>, Problem> {
    let mut sizes = Vec::with_capacity(limit);
    while sizes.len() < limit {
        let signatures = app.log.store.signatures(after, 2 * (limit - sizes.len())).await?;
        let Some(last) = signatures.last() else { break };
        after = Some(last.size);
        sizes.extend(
            signatures.iter().filter(|one| one.kind == SignatureKind::Checkpoint).map(|one| one.size),
        );
        sizes.dedup();
    }
    sizes.truncate(limit);
    Ok(sizes)
}

async fn view(app: &App, size: TreeSize) -> Result<Option<CheckpointView>, Problem> {
    let Some(note) = with_cosignatures(&*app.log.store, size).await? else { return Ok(None) };
    let checkpoint = Checkpoint::parse_text(note.text()).map_err(|_| Problem::internal())?;
    Ok(Some(CheckpointView { size: size.get(), root: checkpoint.root().to_string(), note: note.to_string() }))
}
