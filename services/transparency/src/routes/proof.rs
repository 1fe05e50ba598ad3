//! Proofs of inclusion and consistency, as JSON, as RFC 9942 receipts, and as C2SP tlog-proof bundles.
//!
//! JSON proofs exist for any sizes up to the newest signed one. Receipts and bundles contain the signature of the
//! (larger) tree, so they exist for signed sizes only.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use ::tlog::proof::TlogProof;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use merkle::{EntryDigest, Hash, LeafIndex, RootHash, TreeSize, verify};
use scitt::receipt::SignedRoot;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::statements::leaf_of;
use super::{Binary, checkpoints, tlog, wrong_query};
use crate::edge::media;
use crate::edge::problem::{Problem, shortened};
use crate::proofs::receipts::ReceiptUnavailable;
use crate::proofs::tiles::ProofFailure;
use crate::routes::app::App;

/// `Cache-Control` for requests that name their sizes: the proof never changes, but cosignatures may be added.
const CACHED: &str = "public, max-age=60";

/// Which leaf, in which tree.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InclusionQuery {
    /// The entry's ID; this or `index`.
    entry_id: Option<String>,
    /// The leaf index; this or `entry_id`.
    #[serde(default, deserialize_with = "super::plain_number")]
    index: Option<u64>,
    /// The tree size; unless given, that of `/checkpoint` if its tree holds the leaf, and else the newest signed one.
    #[serde(default, deserialize_with = "super::plain_number")]
    size: Option<u64>,
}

/// Which two trees.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ConsistencyQuery {
    /// The smaller size; 0 for a reader that has seen nothing yet.
    #[serde(deserialize_with = "super::required_number")]
    first: u64,
    /// The larger size; that of `/checkpoint` unless given, and then JSON carries that checkpoint too.
    #[serde(default, deserialize_with = "super::plain_number")]
    second: Option<u64>,
}

/// A leaf's path to the root.
#[derive(Debug, Serialize, ToSchema)]
pub struct InclusionView {
    /// The leaf.
    index: u64,
    /// SHA-256 of the statement in hex: the content of the leaf.
    entry_id: String,
    /// Leaves of the tree.
    tree_size: u64,
    /// SHA-256(0x00 ‖ entry), hex.
    leaf_hash: String,
    /// Hashes from the leaf to the root, hex (RFC 9162, section 2.1.3).
    path: Vec<String>,
    /// The root they lead to, hex.
    root: String,
}

/// That one tree is the beginning of another.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsistencyView {
    /// The smaller size.
    first: u64,
    /// The larger size.
    second: u64,
    /// Hashes of the proof, hex (RFC 9162, section 2.1.4). None when the sizes are equal, or the first is 0: every tree
    /// begins with the empty one.
    path: Vec<String>,
    /// The checkpoint of the larger tree (a C2SP signed note), where no larger size was asked for: with it a monitor needs
    /// one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
}

/// The inclusion path of an entry.
#[utoipa::path(
    get,
    path = "/v1/proof/inclusion",
    tag = "Log",
    params(InclusionQuery),
    responses(
        (status = 200, description = "The path; as a COSE receipt or a tlog-proof where that type is asked for",
         content((InclusionView = "application/json"), (Binary = "application/scitt-receipt+cose"), (Binary = "application/cose"), (String = "text/x.tlog.proof"))),
        (status = 400, description = "No such proof"),
        (status = 404, description = "Not Found, or no signature for this size; with Retry-After, the statement is accepted and waits for its place in the log", headers(("Retry-After" = u32)))
    )
)]
pub async fn inclusion(
    State(app): State<App>,
    query: Result<Query<InclusionQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|why| bad_query(&why))?;
    let leaf = leaf(&app, &query).await?;
    let cached = cached(query.size);
    let (size, path) = inclusion_path(&app, leaf, query.size).await?;
    match ProofForm::of(&headers) {
        ProofForm::Receipt(media) => {
            let signed = signed_root(&app, size).await?;
            Ok(answer(cached, media, signed.inclusion_receipt(leaf, &path)))
        }
        ProofForm::Bundle => {
            let checkpoint = checkpoints::of_size(&app, size).await?.to_string();
            let bundle =
                TlogProof::new(leaf, path, checkpoint.as_bytes()).map_err(|_| Problem::internal())?;
            Ok(answer(cached, TLOG_PROOF, bundle.to_string()))
        }
        ProofForm::Json => {
            let entry = digest(&app, leaf).await?;
            let root = verify::implied_root(entry.leaf_hash(), leaf, size, &path);
            let root = root.map_err(|_| Problem::internal())?;
            Ok(answer(cached, media::JSON, Json(inclusion_view(leaf, entry, size, &path, root))))
        }
    }
}

/// The inclusion path of a leaf in a tree of the given size, or in the one that is served to a reader that names none.
pub async fn inclusion_path(
    app: &App,
    leaf: LeafIndex,
    requested: Option<u64>,
) -> Result<(TreeSize, Vec<Hash>), Problem> {
    let size = size_with(app, leaf, requested).await?;
    let path = app.log.receipts.tiles().inclusion(leaf, size).await.map_err(no_proof)?;
    Ok((size, path))
}

/// The consistency proof between the trees of two sizes, of which the second is at most the newest signed one.
pub async fn consistency_path(app: &App, first: TreeSize, second: TreeSize) -> Result<Vec<Hash>, Problem> {
    let second = size(app, Some(second.get())).await?;
    app.log.receipts.tiles().consistency(first, second).await.map_err(no_proof)
}

/// That the tree of one size is the beginning of a larger one.
///
/// As JSON and without `second`, the answer holds all that a monitor needs to go on from the tree it has verified: what
/// `/checkpoint` serves, cosignatures included, and the path to exactly that size.
#[utoipa::path(
    get,
    path = "/v1/proof/consistency",
    tag = "Log",
    params(ConsistencyQuery),
    responses(
        (status = 200, description = "The proof; as a COSE receipt where that type is asked for",
         content((ConsistencyView = "application/json"), (Binary = "application/scitt-receipt+cose"), (Binary = "application/cose"))),
        (status = 400, description = "No such proof: first is larger than second, or second is larger than the newest signed tree; or there is \
                                      no receipt of it: a receipt has a path, and so 0 < first < second"),
        (status = 404, description = "No signature for this size"),
        (status = 503, description = "No second size was given, and no checkpoint has enough cosignatures yet")
    )
)]
pub async fn consistency(
    State(app): State<App>,
    query: Result<Query<ConsistencyQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|why| bad_query(&why))?;
    let first = TreeSize::new(query.first);
    let (second, checkpoint) = match query.second {
        Some(_) => (size(&app, query.second).await?, None),
        None => newest_for(&app, first).await.map(|(size, note)| (size, Some(note)))?,
    };
    let cached = cached(query.second);
    let path = match first {
        // Nothing to prove: every tree begins with the empty one.
        TreeSize::EMPTY => Vec::new(),
        first => app.log.receipts.tiles().consistency(first, second).await.map_err(no_proof)?,
    };
    if let ProofForm::Receipt(media) = ProofForm::of(&headers) {
        if path.is_empty() {
            let detail = "A consistency receipt has a path: the first size is neither 0 nor the second";
            return Err(Problem::malformed("proof-none", detail));
        }
        let receipt = signed_root(&app, second).await?.consistency_receipt(first, &path);
        return Ok(answer(cached, media, receipt));
    }
    let text = |note: Bytes| String::from_utf8(note.into()).map_err(|_| Problem::internal());
    let checkpoint = checkpoint.map(text).transpose()?;
    let view = ConsistencyView { first: first.get(), second: second.get(), path: hex(&path), checkpoint };
    Ok(answer(cached, media::JSON, Json(view)))
}

/// The media type of a tlog-proof bundle.
const TLOG_PROOF: &str = "text/x.tlog.proof";

/// The form of a proof that the client prefers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProofForm {
    Json,
    /// A COSE receipt with the requested type (RFC 9110, section 12.5.1).
    Receipt(&'static str),
    Bundle,
}

impl ProofForm {
    fn of(headers: &HeaderMap) -> ProofForm {
        let wants = |media: &str| media::prefers(headers, media, &[media::JSON]);
        match () {
            () if wants(TLOG_PROOF) => ProofForm::Bundle,
            () if wants(media::RECEIPT) || wants(media::COSE) => {
                ProofForm::Receipt(media::cose_or(headers, media::RECEIPT))
            }
            () => ProofForm::Json,
        }
    }
}

/// `Cache-Control` of a proof: short if the request names no size, since the newest tree changes soon.
fn cached(requested: Option<u64>) -> &'static str {
    if requested.is_some() { CACHED } else { tlog::NEWEST }
}

fn answer(cached: &'static str, media: &'static str, body: impl IntoResponse) -> Response {
    let headers = [(CONTENT_TYPE, media), (CACHE_CONTROL, cached), media::NEGOTIATED];
    (headers, body).into_response()
}

async fn leaf(app: &App, query: &InclusionQuery) -> Result<LeafIndex, Problem> {
    match (&query.entry_id, query.index) {
        (Some(id), None) => {
            let digest: EntryDigest = id.parse().map_err(|_| Problem::invalid_locator())?;
            leaf_of(app, digest).await
        }
        (None, Some(index)) => Ok(LeafIndex::new(index)),
        _ => Err(Problem::malformed("query", "Give `entry_id` or `index`, one of the two")),
    }
}

/// The checkpoint of `/checkpoint` for a reader that knows the tree of size `first`. If that tree is larger, the reader
/// has seen a head without a quorum, and gets the newest signed checkpoint.
async fn newest_for(app: &App, first: TreeSize) -> Result<(TreeSize, Bytes), Problem> {
    match tlog::served(app).await {
        Ok((size, _)) if size < first => tlog::published(app).await,
        served => served,
    }
}

/// The requested size. Without one, the size of `/checkpoint`, which witnesses have cosigned, if its tree contains the
/// leaf.
async fn size_with(app: &App, leaf: LeafIndex, requested: Option<u64>) -> Result<TreeSize, Problem> {
    match (requested, tlog::served(app).await) {
        (None, Ok((served, _))) if served.holds(leaf) => Ok(served),
        _ => size(app, requested).await,
    }
}

/// The requested size, if it is at most the newest signed one, which is also the default.
async fn size(app: &App, requested: Option<u64>) -> Result<TreeSize, Problem> {
    let (newest, _) = tlog::published(app).await?;
    match requested.map(TreeSize::new) {
        None => Ok(newest),
        Some(size) if size <= newest => Ok(size),
        Some(_) => {
            let detail = format!("No tree of that size is signed; the newest has size {newest}");
            Err(Problem::malformed("proof-size", detail))
        }
    }
}

async fn digest(app: &App, leaf: LeafIndex) -> Result<EntryDigest, Problem> {
    let digests = app.log.store.digests(leaf, 1).await?;
    digests.into_iter().next().ok_or_else(|| Problem::unknown_entry(&leaf.to_string()))
}

async fn signed_root(app: &App, size: TreeSize) -> Result<SignedRoot, Problem> {
    // As it is stored: who audits the log judges it.
    let Some(signature) = app.log.receipts.signatures_of(size, &app.log.sequencer).await?.pop() else {
        return Err(checkpoints::unsigned(app, size).await);
    };
    SignedRoot::parse(signature.bytes).map_err(|_| Problem::internal())
}

fn inclusion_view(
    leaf: LeafIndex,
    entry: EntryDigest,
    size: TreeSize,
    path: &[Hash],
    root: RootHash,
) -> InclusionView {
    InclusionView {
        index: leaf.get(),
        entry_id: entry.to_string(),
        tree_size: size.get(),
        leaf_hash: entry.leaf_hash().to_string(),
        path: hex(path),
        root: root.to_string(),
    }
}

fn hex(path: &[Hash]) -> Vec<String> {
    path.iter().map(Hash::to_string).collect()
}

/// The problem of a query that cannot be read.
pub fn bad_query(why: &QueryRejection) -> Problem {
    Problem::malformed("query", format!("The query cannot be read: {}", shortened(&wrong_query(why))))
}

fn no_proof(why: ProofFailure) -> Problem {
    match why {
        ProofFailure::NoProof(why) => {
            Problem::malformed("proof-none", format!("There is no such proof: {why}"))
        }
        other => ReceiptUnavailable::from(other).into(),
    }
}
