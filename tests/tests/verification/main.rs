//! The verification service, next to a log.
#![allow(clippy::unwrap_used)]

mod crashes;
mod overload;
mod receipts;
mod storage;
mod telemetry;

use black_box::VerificationProcess;
use black_box::cli::Folder;
use serde_json::{Value, json};

/// The agent whose work is checked.
const AGENT: &str = "did:web:agent.example";

/// A request of tier 1 about work of [`AGENT`]; `number` makes it another request.
fn request(number: usize) -> Value {
    json!({
        "tier": 1,
        "subject": AGENT,
        "task": { "task_id": format!("task-{number}"), "task_type": "data_processing" },
        "artifact": { "media_type": "application/json", "content": { "count": number } },
        "schema": {
            "type": "object",
            "properties": { "count": { "type": "integer", "maximum": 1000 } },
            "required": ["count"],
        },
    })
}

/// Asserts that the log has exactly this number of receipts about [`AGENT`], all verified, in one chain without gaps and
/// forks.
#[track_caller]
fn expect_whole(folder: &Folder, issuer: &str, receipts: usize) {
    let shown = folder.run(&["vrf", "chain", issuer, "--sub", AGENT, "--json"]).must_end_with(0).json();
    let chain = &shown["chains"][0];
    assert_eq!(chain["whole"], true, "{chain}");
    let positions: Vec<u64> = chain["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|receipt| receipt["position"].as_u64().unwrap())
        .collect();
    assert_eq!(positions, (0..receipts as u64).collect::<Vec<_>>());
}

/// Registers all requests, each of which may have been made before, and returns the answers.
#[track_caller]
fn register_all(service: &VerificationProcess, requests: usize) -> Vec<Value> {
    (0..requests).map(|number| service.registered(&request(number))).collect()
}
