//! The state of the witnesses that cosign this log's checkpoints.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use merkle::TreeSize;
use serde::Serialize;
use utoipa::ToSchema;

use super::tlog;
use crate::edge::problem::Problem;
use crate::routes::app::App;
use crate::time::rfc3339;
use crate::witnessing::WitnessState;

/// The witnesses of the log.
#[derive(Debug, Serialize, ToSchema)]
pub struct Witnesses {
    /// The witness or group that must have cosigned a checkpoint before it is served; absent if none has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorum: Option<String>,
    /// Whether enough of them have cosigned lately.
    pub quorum_met: bool,
    /// Leaves of the newest signed tree.
    pub newest_size: u64,
    /// Leaves of the checkpoint that is served; absent before the first that meets the quorum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served_size: Option<u64>,
    /// Seconds after which a checkpoint that stays the newest is cosigned again.
    pub interval_seconds: u64,
    /// In the order of the policy.
    pub witnesses: Vec<WitnessView>,
}

/// One of them.
#[derive(Debug, Serialize, ToSchema)]
pub struct WitnessView {
    /// Its name in the policy.
    pub name: String,
    /// Its verifier key (C2SP signed-note).
    pub key: String,
    /// Where it is asked; absent if this log does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Leaves of the largest tree that it cosigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosigned_size: Option<u64>,
    /// When it did last, by its own clock. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosigned_at: Option<String>,
    /// Leaves of the newest signed tree that it has not cosigned.
    pub behind: u64,
    /// Whether it has cosigned lately.
    pub fresh: bool,
    /// Why it did not when it was asked last; known to the process that leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<TroubleView>,
}

/// Why a witness did not cosign.
#[derive(Debug, Serialize, ToSchema)]
pub struct TroubleView {
    /// One word, as in the metric `tabellion_witness_errors_total`.
    pub code: &'static str,
    /// How often in a row.
    pub times: u32,
    /// When it was asked last. RFC 3339.
    pub at: Option<String>,
}

/// The witnesses of this log, with the newest checkpoint that each has cosigned.
#[utoipa::path(
    get,
    path = "/v1/witnesses",
    tag = "C2SP",
    responses((status = 200, description = "The witnesses and their newest cosignatures", body = Witnesses), (status = 503, description = "No checkpoint is signed yet"))
)]
pub async fn witnesses(State(app): State<App>) -> Result<Response, Problem> {
    Ok(([(CACHE_CONTROL, "no-cache")], Json(read(&app).await?)).into_response())
}

/// Reads the state of the witnesses; 503 before the first checkpoint.
pub async fn read(app: &App) -> Result<Witnesses, Problem> {
    let (newest, _) = tlog::published(app).await?;
    let witnessing = &app.log.witnessing;
    let statuses = witnessing.statuses();
    let served = match witnessing.needs_quorum() {
        true => witnessing.served().map(|served| served.size.get()),
        false => Some(newest.get()),
    };
    Ok(Witnesses {
        quorum: witnessing.quorum_name().map(str::to_owned),
        quorum_met: !witnessing.needs_quorum() || statuses.met,
        newest_size: newest.get(),
        served_size: served,
        interval_seconds: witnessing.every().as_secs(),
        witnesses: statuses.witnesses.iter().map(|one| WitnessView::of(one, newest)).collect(),
    })
}

impl WitnessView {
    fn of(one: &WitnessState, newest: TreeSize) -> Self {
        let size = one.cosigned.map(|(size, _)| size.get());
        Self {
            name: one.name.clone(),
            key: one.key.clone(),
            url: one.url.clone(),
            cosigned_size: size,
            cosigned_at: one.cosigned.and_then(|(_, at)| rfc3339(at)),
            behind: newest.get().saturating_sub(size.unwrap_or(0)),
            fresh: one.fresh,
            trouble: one.trouble.as_ref().map(|trouble| TroubleView {
                code: trouble.code,
                times: trouble.times,
                at: rfc3339(trouble.at),
            }),
        }
    }
}
