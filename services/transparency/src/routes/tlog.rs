//! The log for C2SP monitors, mirrors and witnesses: tlog-checkpoint and tlog-tiles, at the root.
//!
//! `/checkpoint` is the newest checkpoint with a quorum of cosignatures, if the operator requires one. Tiles exist up
//! to the newest signed head, and no receipt is for a larger tree.
//!
//! A tile is served with the width in its name, and only if the newest signed tree contains it. So every size that was
//! ever published has its partial tiles, and no reader sees more of the tree than was signed. A served tile never
//! changes: caches may keep it for ever.
//!
//! An entry is the 32-byte SHA-256 of a statement; the statement itself is at `/v1/entries/{entry_id}/statement`.

use axum::extract::{Path, State};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use merkle::tile::{BundleId, TileId, TilePath};
use merkle::{EntryDigest, LeafHash, LeafIndex, TreeSize};
use store::{SignatureKind, StoreError};

use super::Binary;
use crate::edge::conditional::conditional_response;
use crate::edge::problem::Problem;
use crate::keys::recorded::sound;
use crate::limits::WITNESS_PACE;
use crate::proofs::receipts::ReceiptUnavailable;
use crate::routes::app::App;

/// The content type of a checkpoint.
pub const NOTE: &str = "text/plain; charset=utf-8";
/// `Cache-Control` of the newest checkpoint.
pub const NEWEST: &str = "public, max-age=1";
/// `Cache-Control` of a tile: under its full name it never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Length of an entry, big-endian, before each entry of a bundle (C2SP tlog-tiles, entry bundles).
const ENTRY_HEAD: [u8; 2] = 32_u16.to_be_bytes();

/// The newest checkpoint that enough witnesses have cosigned: a signed note (C2SP tlog-checkpoint) with their cosignatures.
/// Where no quorum is asked for, the newest that is signed.
#[utoipa::path(
    get,
    path = "/checkpoint",
    tag = "C2SP",
    responses(
        (status = 200, description = "Origin, tree size and root, signed with the checkpoint key", body = String, content_type = "text/plain; charset=utf-8"),
        (status = 304, description = "Still the checkpoint that If-None-Match names"),
        (status = 503, description = "No checkpoint is signed yet, or none has enough cosignatures")
    )
)]
pub async fn checkpoint(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let (size, note) = served(&app).await?;
    Ok(conditional_response(&headers, tag(size, &note), NOTE, NEWEST, note))
}

/// A tile of hashes, or a bundle of entries (C2SP tlog-tiles).
#[utoipa::path(
    get,
    path = "/tile/{*path}",
    tag = "C2SP",
    params(("path" = String, Path, description = "`<L>/<N>[.p/<W>]` or `entries/<N>[.p/<W>]`")),
    responses(
        (status = 200, description = "1 to 256 hashes of 32 bytes; or as many entries, each after its length in two bytes", body = Binary, content_type = "application/octet-stream"),
        (status = 304, description = "The same as ever"),
        (status = 404, description = "No published tree has it, or it is not a tile's name")
    )
)]
pub async fn tile(
    State(app): State<App>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name: TilePath = format!("tile/{path}").parse().map_err(|_| no_tile("That is not a tile's name"))?;
    let (size, _) = published(&app).await?;
    let data = match name {
        TilePath::Hashes(tile) if tile.is_in(size) => {
            app.log.receipts.tiles().tile(tile).await.map_err(ReceiptUnavailable::from)?
        }
        TilePath::Entries(bundle) if bundle.is_in(size) => entries(&app, bundle).await?,
        _ => {
            return Err(no_tile(
                "No published tree has this tile; the checkpoint says how large the tree is",
            ));
        }
    };
    Ok(conditional_response(&headers, format!("\"{name}\""), "application/octet-stream", FOR_EVER, data))
}

/// The checkpoint of `/checkpoint`, and its size.
pub async fn served(app: &App) -> Result<(TreeSize, Bytes), Problem> {
    let witnessing = &app.log.witnessing;
    let cosigned = witnessing.served();
    if witnessing.needs_quorum() {
        let served = cosigned.map(|served| (served.size, served.note.clone()));
        return served.ok_or_else(|| {
            let detail =
                "No checkpoint has been cosigned by enough witnesses yet; /v1/witnesses says by whom";
            Problem::busy("quorum-not-met", detail, WITNESS_PACE.as_secs())
        });
    }
    let (size, note) = published(app).await?;
    match cosigned.filter(|cosigned| cosigned.size == size) {
        Some(cosigned) => Ok((size, cosigned.note.clone())),
        None => Ok((size, note)),
    }
}

/// The newest signed checkpoint with its size, without regard to cosignatures.
pub async fn published(app: &App) -> Result<(TreeSize, Bytes), Problem> {
    let newest = app.log.sequencer.published();
    if let Some(signature) = newest.as_deref().and_then(|head| head.signature(SignatureKind::Checkpoint)) {
        return Ok((signature.size, signature.bytes.clone()));
    }
    match app.log.store.newest_signed(SignatureKind::Checkpoint).await? {
        Some(signed) => {
            let signature = sound(&*app.log.store, signed.signature).await?;
            Ok((signature.size, signature.bytes))
        }
        None => Err(Problem::busy("not-signed-yet", "No checkpoint is signed yet", 1)),
    }
}

async fn entries(app: &App, bundle: BundleId) -> Result<Bytes, Problem> {
    let first = LeafIndex::new(bundle.number() * 256);
    let digests = app.log.store.digests(first, usize::from(bundle.width())).await?;
    // Caches keep the response for ever, so check it against the tree.
    let tile = TileId::at(0, bundle.number(), TreeSize::new(first.get() + u64::from(bundle.width())));
    let tile = tile.ok_or_else(|| no_tile("That bundle has no entries"))?;
    let leaves = app.log.receipts.tiles().tile(tile).await.map_err(ReceiptUnavailable::from)?;
    let are_leaves = digests.iter().map(|digest| digest.leaf_hash());
    if !are_leaves.eq(leaves.as_chunks().0.iter().map(|hash| LeafHash::from_bytes(*hash))) {
        let why = format!("an entry of bundle {} is not the leaf that the tree has", bundle.number());
        return Err(StoreError::Damaged(why).into());
    }
    let mut data = BytesMut::with_capacity(digests.len() * (ENTRY_HEAD.len() + 32));
    for digest in digests {
        data.extend_from_slice(&ENTRY_HEAD);
        data.extend_from_slice(digest.as_bytes());
    }
    Ok(data.freeze())
}

/// The ETag of a checkpoint: witnesses add to the note, so the size alone does not identify it.
pub fn tag(size: TreeSize, note: &Bytes) -> String {
    format!("\"{size}-{:.16}\"", EntryDigest::of(note).to_string())
}

fn no_tile(detail: &'static str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "tile-unknown", "Not Found", detail)
}
