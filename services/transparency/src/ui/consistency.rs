//! `/ui/consistency`: the consistency proof between two trees.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use explorer::{CheckpointNote, ConsistencyPage, ProvenTree};
use merkle::verify::{PathStep, consistency_steps};
use merkle::{Hash, TreeSize};
use serde::Deserialize;
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;

use super::page::{frame, page};
use super::proof::level;
use crate::edge::problem::Problem;
use crate::proofs::receipts::ReceiptUnavailable;
use crate::routes::app::App;
use crate::routes::checkpoints::{self, tree_size};
use crate::routes::proof::{bad_query, consistency_path};

/// Which two trees.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoSizes {
    /// The size of the smaller tree.
    first: String,
    /// The size of the larger tree.
    second: String,
}

/// The page of a consistency proof.
pub async fn consistency(
    State(app): State<App>,
    sizes: Result<Query<TwoSizes>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(sizes) = sizes.map_err(|why| bad_query(&why))?;
    let (older, newer) = sizes.in_order()?;
    let path = consistency_path(&app, older, newer).await?;
    let root = app.log.receipts.tiles().root(older).await.map_err(ReceiptUnavailable::from)?;
    let steps = consistency_steps(older, newer, root, &path).map_err(|_| Problem::internal())?;
    let view = ConsistencyPage {
        hashes: path.len(),
        start: steps.start.to_string(),
        start_is_given: steps.start_is_given,
        older: proven(&app, older, steps.start, &steps.older).await?,
        newer: proven(&app, newer, steps.start, &steps.newer).await?,
        url: app.log.identity.public_url.clone(),
    };
    Ok(page(view.html(&frame(&app.log))))
}

impl TwoSizes {
    fn in_order(&self) -> Result<(TreeSize, TreeSize), Problem> {
        let (first, second) = (tree_size(&self.first)?, tree_size(&self.second)?);
        if first == TreeSize::EMPTY || first >= second {
            let detail = format!(
                "There is no proof from {first} to {second}: the first size is at least 1, and less than the second"
            );
            return Err(Problem::malformed("proof-none", detail));
        }
        Ok((first, second))
    }
}

/// A tree with the steps from the start to its root, and the checkpoint of its size.
async fn proven(app: &App, size: TreeSize, start: Hash, steps: &[PathStep]) -> Result<ProvenTree, Problem> {
    let root = steps.last().map_or(start, |step| step.parent);
    let note = checkpoints::signed(app, size).await?;
    Ok(ProvenTree {
        size: size.get(),
        levels: steps.iter().map(level).collect(),
        root: root.to_string(),
        signed: note
            .map(|note| CheckpointNote { is_the_same: has_root(&note, root), note: note.to_string() }),
    })
}

fn has_root(note: &Note, root: Hash) -> bool {
    Checkpoint::parse_text(note.text()).is_ok_and(|checkpoint| Hash::from(checkpoint.root()) == root)
}
