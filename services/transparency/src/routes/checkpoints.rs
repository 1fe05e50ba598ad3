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
use merkle::{LeafIndex, TreeSize};
use serde::{Deserialize, Serialize};
use store::SignatureKind;
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;
use utoipa::{IntoParams, ToSchema};

use super::entry_query::ListOrder;
use super::paging::wrong_page_query;
use super::tlog::{NOTE, published, tag};
use super::{add_next_link, canonical};
use crate::edge::conditional::conditional_response;
use crate::edge::problem::{Problem, shortened};
use crate::limits::{CHECKPOINTS_DEFAULT, CHECKPOINTS_PAGE};
use crate::routes::app::App;
use crate::time::rfc3339;
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
    pub after: Option<u64>,
    /// With `order=newest`: list checkpoints of smaller trees than this.
    #[serde(default, deserialize_with = "super::plain_number")]
    pub before: Option<u64>,
    /// `oldest` first unless given, or `newest` first.
    #[serde(default)]
    #[param(inline)]
    pub order: ListOrder,
    /// How many, at most: 1 to 100, 25 unless given.
    #[param(minimum = 1)]
    #[serde(default, deserialize_with = "super::plain_number")]
    pub limit: Option<usize>,
}

/// A page of checkpoints.
#[derive(Debug, Serialize, ToSchema)]
pub struct Checkpoints {
    /// In order of size, or in the reverse one with `order=newest`.
    checkpoints: Vec<CheckpointView>,
}

/// A tree head that was signed.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckpointView {
    /// Leaves of the tree.
    pub size: u64,
    /// Its root, hex.
    pub root: String,
    /// When the batch of this size was committed. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The signed note (C2SP tlog-checkpoint), with the cosignatures that it has.
    pub note: String,
}

/// Every checkpoint that was signed, by size; the largest first with `order=newest`. `Link: rel="next"` leads on while there may be more.
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
        (status = 400, description = "after or limit is not a number, or limit is too large")
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
    let Query(page) = page.map_err(wrong_page_query)?;
    let limit = page.limit.unwrap_or(CHECKPOINTS_DEFAULT);
    if !(1..=CHECKPOINTS_PAGE).contains(&limit) {
        return Err(wrong());
    }
    let (checkpoints, next) = match page.order {
        ListOrder::Oldest => oldest(&app, page.after.map(TreeSize::new), limit).await?,
        ListOrder::Newest => {
            let (checkpoints, last) = newest(&app, page.before.map(TreeSize::new), limit).await?;
            (checkpoints, last.map(|last| format!("order=newest&before={last}")))
        }
    };
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(Checkpoints { checkpoints })).into_response();
    if let Some(next) = next {
        add_next_link(&app, &mut response, "v1/checkpoints", &format!("{next}&limit={limit}"));
    }
    Ok(response)
}

/// A page of the checkpoints after a size, and the query of the next page without its limit.
async fn oldest(
    app: &App,
    after: Option<TreeSize>,
    limit: usize,
) -> Result<(Vec<CheckpointView>, Option<String>), Problem> {
    let sizes = signed_sizes(app, after, limit).await?;
    let mut checkpoints = Vec::with_capacity(sizes.len());
    for size in &sizes {
        checkpoints.extend(view(app, *size).await?);
    }
    let last = sizes.last().filter(|_| sizes.len() == limit);
    Ok((checkpoints, last.map(|last| format!("after={last}"))))
}

/// A page of the checkpoints before a size, newest first, and the size before which there are more. Of `limit` heads,
/// those that were signed.
pub async fn newest(
    app: &App,
    before: Option<TreeSize>,
    limit: usize,
) -> Result<(Vec<CheckpointView>, Option<TreeSize>), Problem> {
    let store = &app.log.store;
    let not_listed = match before.and_then(|size| size.get().checked_sub(1)) {
        Some(leaf) => store.head_covering(LeafIndex::new(leaf)).await?.map(|head| head.batch),
        None if before.is_some() => Some(1),
        None => None,
    };
    let end = match not_listed {
        Some(batch) => batch,
        None => store.head().await?.batch + 1,
    };
    let from = end.saturating_sub(limit as u64).max(1);
    let heads = store.heads(from, usize::try_from(end.saturating_sub(from)).unwrap_or(limit)).await?;
    let mut checkpoints = Vec::with_capacity(heads.len());
    for head in heads.iter().rev() {
        checkpoints.extend(view(app, head.size).await?);
    }
    let last = heads.first().filter(|head| head.batch > 1);
    Ok((checkpoints, last.map(|last| last.size)))
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
        (status = 400, description = "The size is not a number"),
        (status = 404, description = "No tree of this size was signed")
    )
)]
pub async fn checkpoint(
    State(app): State<App>,
    Path(size): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let size = tree_size(&size)?;
    let note: Bytes = of_size(&app, size).await?.to_string().into();
    Ok(conditional_response(&headers, tag(size, &note), NOTE, CACHED, note))
}

/// Parses a tree size.
///
/// # Errors
/// 400 `size`.
pub fn tree_size(text: &str) -> Result<TreeSize, Problem> {
    let wrong = || {
        let detail = format!("\"{}\" is not a tree size, which is a number in plain digits", shortened(text));
        Problem::malformed("size", detail)
    };
    canonical(text).map(TreeSize::new).ok_or_else(wrong)
}

/// The checkpoint of exactly this size, with its cosignatures; `None` if the log signed none.
pub async fn signed(app: &App, size: TreeSize) -> Result<Option<Note>, Problem> {
    Ok(with_cosignatures(&*app.log.store, size).await?.or_else(|| just_published(app, size)))
}

/// The checkpoint of exactly this size, with its cosignatures; 404 `size-unsigned` if there is none.
pub async fn of_size(app: &App, size: TreeSize) -> Result<Note, Problem> {
    match signed(app, size).await? {
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
            format!("No tree of that size is signed yet; the newest has size {newest}")
        }
        _ => format!("The tree of size {size} was never signed: it is within a batch"),
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
    let head = app.log.store.head_of_size(size).await?;
    Ok(Some(CheckpointView {
        size: size.get(),
        root: checkpoint.root().to_string(),
        at: head.and_then(|head| rfc3339(head.at)),
        note: note.to_string(),
    }))
}
