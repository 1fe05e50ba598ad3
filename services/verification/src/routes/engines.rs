//! `GET /v1/engines`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serving::problem::ProblemDetails;
use utoipa::ToSchema;

use super::state::ServiceState;

/// What can be checked here.
#[derive(Debug, Serialize, ToSchema)]
pub struct EnginesView {
    /// The verifier: the issuer of the receipts.
    issuer: String,
    /// The URL of the log.
    log: String,
    /// The tiers of which checks can be run.
    tiers: Vec<u8>,
    /// The engines that are available.
    engines: Vec<EngineView>,
    /// Why engines are missing.
    missing: Vec<String>,
}

/// An engine, as receipts name it.
#[derive(Debug, Serialize, ToSchema)]
struct EngineView {
    /// What it runs.
    runs: &'static str,
    /// The engine's name.
    name: String,
    /// The engine's version.
    version: String,
    /// The value of `metadata.sandbox`.
    sandbox: String,
    /// SHA-256 digests of the files that make up the engine.
    digests: BTreeMap<String, String>,
}

/// Returns the tiers and languages that can be checked, with the digests of the engines.
#[utoipa::path(
    get,
    path = "/v1/engines",
    tag = "Verification",
    responses(
        (status = 200, description = "The engines", body = EnginesView),
        (status = 500, description = "A defect of the service", body = ProblemDetails, content_type = "application/problem+json")
    )
)]
pub async fn engines(State(state): State<ServiceState>) -> Json<EnginesView> {
    let engines = state.jobs.runner.engines();
    let available = engines.available.iter().map(|(facility, engine)| EngineView {
        runs: facility.name(),
        name: engine.name.clone(),
        version: engine.version.clone(),
        sandbox: engine.sandbox.clone(),
        digests: engine.digests.iter().cloned().collect(),
    });
    Json(EnginesView {
        issuer: state.jobs.chain_signer.issuer().to_owned(),
        log: state.log.to_string(),
        tiers: engines.tiers(),
        engines: available.collect(),
        missing: engines.refused.clone(),
    })
}
