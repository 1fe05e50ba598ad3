//! `/ui/entries/{entry_id}/proof`: the inclusion proof, and `…/receipt`: the receipt as a file. `/entries/{entry_id}` leads
//! browsers to the entry's page, so a browser needs another address for the receipt.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use explorer::{ProofLevel, ProofPage};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use merkle::verify::{PathStep, inclusion_steps};
use scitt::SignedStatement;
use scitt::transparent::takes_receipts;
use store::Entry;

use super::page::{frame, page};
use crate::config::roles::CallerRole;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::media;
use crate::edge::problem::Problem;
use crate::log::state::Resolved;
use crate::routes::EntryId;
use crate::routes::app::App;
use crate::routes::bodies::may_read;
use crate::routes::checkpoints;
use crate::routes::entries::still_running;
use crate::routes::proof::inclusion_path;
use crate::routes::statements::stored_entry;
use crate::run_blocking::run_blocking;

/// The page of an inclusion proof.
pub async fn proof(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    EntryId(digest): EntryId,
) -> Result<Response, Problem> {
    let entry = stored_entry(&app, digest).await?;
    let leaf = entry.index;
    let (size, path) = inclusion_path(&app, leaf, None).await?;
    let leaf_hash = digest.leaf_hash();
    let steps = inclusion_steps(leaf_hash, leaf, size, &path).map_err(|_| Problem::internal())?;
    let root = steps.last().map_or_else(|| leaf_hash.to_string(), |step| step.parent.to_string());
    let note = checkpoints::signed(&app, size).await?;
    let proof = ProofPage {
        id: digest.to_string(),
        leaf: leaf.get(),
        size: size.get(),
        leaf_hash: leaf_hash.to_string(),
        levels: steps.iter().map(level).collect(),
        root,
        checkpoint: note.map(|note| note.to_string()),
        verifiable: is_verifiable(&app, &caller, entry),
    };
    Ok(page(proof.html(&frame(&app.log))))
}

/// Returns `true` if the service gives the caller the statement with its receipt, which the page `/ui/verify` fetches.
pub fn is_verifiable(app: &App, caller: &AuthenticatedCaller, entry: Entry) -> bool {
    if caller.role < CallerRole::Reader || !may_read(app, caller, &entry) {
        return false;
    }
    let Some(bytes) = entry.statement else { return false };
    run_blocking(bytes.len(), || {
        SignedStatement::parse(bytes).is_ok_and(|statement| takes_receipts(&statement))
    })
}

/// A step of a path, to be drawn.
pub fn level(step: &PathStep) -> ProofLevel {
    ProofLevel {
        left: step.left.to_string(),
        right: step.right.to_string(),
        left_is_given: step.sibling_is_left,
    }
}

/// The receipt of an entry with the earliest time, as a file.
pub async fn receipt(State(app): State<App>, EntryId(digest): EntryId) -> Result<Response, Problem> {
    let leaf = stored_entry(&app, digest).await?.index;
    let Resolved::Receipt(receipt) = app.log.dated_receipt(leaf).await? else {
        return Ok(still_running(&app));
    };
    let headers = [
        (CONTENT_TYPE, media::COSE.to_owned()),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{digest}.receipt\"")),
    ];
    Ok((headers, receipt).into_response())
}
