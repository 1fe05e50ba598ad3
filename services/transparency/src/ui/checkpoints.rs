//! `/ui/checkpoints`: the newest checkpoints, and the witnesses.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use display::counted;
use explorer::{CheckpointRow, CheckpointsPage, WitnessRow};
use merkle::TreeSize;
use serde::Deserialize;

use super::page::{frame, page};
use crate::edge::problem::Problem;
use crate::limits::CHECKPOINTS_DEFAULT;
use crate::routes::app::App;
use crate::routes::checkpoints::{self, CheckpointView};
use crate::routes::paging::wrong_page_query;
use crate::routes::witnesses::{self, WitnessView};

/// The position in the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointsQuery {
    /// List checkpoints of smaller trees than this.
    #[serde(default, deserialize_with = "crate::routes::plain_number")]
    before: Option<u64>,
}

/// The page of checkpoints and witnesses.
pub async fn checkpoints(
    State(app): State<App>,
    position: Result<Query<CheckpointsQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(position) = position.map_err(wrong_page_query)?;
    let before = position.before.map(TreeSize::new);
    let (rows, next) = checkpoints::newest(&app, before, CHECKPOINTS_DEFAULT).await?;
    let witnesses = witnesses::read(&app).await?;
    let view = CheckpointsPage {
        rows: rows.into_iter().map(checkpoint).collect(),
        next: next.map(|size| format!("/ui/checkpoints?before={size}")),
        witnesses: witnesses.witnesses.into_iter().map(witness).collect(),
        quorum: witnesses.quorum,
        quorum_met: witnesses.quorum_met,
    };
    Ok(page(view.html(&frame(&app.log))))
}

fn checkpoint(view: CheckpointView) -> CheckpointRow {
    CheckpointRow { size: view.size, root: view.root, at: view.at, note: view.note }
}

fn witness(view: WitnessView) -> WitnessRow {
    WitnessRow {
        name: view.name,
        key: view.key,
        size: view.cosigned_size,
        at: view.cosigned_at,
        behind: view.behind,
        fresh: view.fresh,
        trouble: view
            .trouble
            .map(|trouble| format!("{}, {}", trouble.code, counted(trouble.times, "time", "times"))),
    }
}
