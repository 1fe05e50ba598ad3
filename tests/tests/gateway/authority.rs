//! AgentROA with a real log: an execution receipt is registered beside the decision that names it.

use std::time::{Duration, Instant};

use black_box::audit_trail::{must_be_whole, of_kind};
use black_box::{Gateway, GatewayProcess, Log, Scene, Service, free_address};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use testkit::McpServer;
use testkit::agentroa::{AGENTS, delegated, input_hash, proof, root};

/// How long the log may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const ENTRIES: &str = "/v1/entries?content_type=application/aer%2Bjson";

/// Waits until the log has this many execution receipts, and returns their entries.
fn receipts_on(service: &Service, running: &GatewayProcess, many: usize) -> Value {
    let begun = Instant::now();
    loop {
        let entries = service.connection().get(ENTRIES).json()["entries"].clone();
        if entries.as_array().is_some_and(|entries| entries.len() >= many) {
            return entries;
        }
        assert!(begun.elapsed() < PATIENCE, "{entries}: {}", running.said());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn permits_and_denials_have_receipts_on_the_log_that_their_decisions_name() {
    let scene = Scene::built(McpServer::ordinary(), Gateway::demanding_chains);
    let mut client = scene.running.modern();
    let chain = delegated(&root(|_| ()), |_| ());
    let text: Value = serde_json::from_slice(&chain.canonical()).unwrap();
    let meta = |proof: String| json!({ "dev.tabellion/roa": text, "dev.tabellion/roa-proof": proof });
    let proof_of = |agent: &str| proof(&chain, agent, "crm.read", &json!({}), black_box::gateway::GATEWAY);
    let served = client.call("crm.read", json!({}), meta(proof_of(AGENTS[1])));
    let denied = client.call("crm.read", json!({}), meta(proof_of(AGENTS[2])));
    let told = [served, denied].map(|told| told.result()["_meta"]["dev.tabellion/aer"]["receipt"].clone());
    assert_eq!(told.each_ref().map(|receipt| receipt["enforcement_outcome"].clone()), ["permit", "deny"]);
    assert_eq!(receipts_on(&scene.service, &scene.running, 2).as_array().unwrap().len(), 2);
    // Two decisions and one outcome.
    let records = scene.records(3);
    must_be_whole(&records);
    // Records come to the log in any order; `seq` has the order of the decisions.
    let mut decisions = of_kind(&records, "decision");
    decisions.sort_by_key(|decision| decision.payload["seq"].as_u64());
    let named: Vec<&Value> = decisions.iter().map(|record| &record.payload["aer_id"]).collect();
    assert_eq!(named, [&told[0]["aer_id"], &told[1]["aer_id"]]);
    assert_eq!(scene.upstream.calls(), 1);
}

#[test]
fn the_keys_command_prints_what_the_policy_must_list_for_receipts() {
    let gateway = Gateway::before("http://127.0.0.1:9/mcp").demanding_chains();
    let printed = gateway.tabellion(&["gateway", "keys", "--config", "gateway.toml"]);
    printed.must_succeed();
    let policy: toml::Table = toml::from_str(&printed.stdout).unwrap();
    let types = policy["type"].as_array().unwrap();
    let receipts =
        types.iter().find(|listed| listed["content_type"].as_str() == Some("application/aer+json"));
    let listed = &receipts.unwrap()["aer"]["gateway"][0];
    assert_eq!(listed["id"].as_str(), Some(testkit::GATEWAY_ID));
    assert_eq!(listed["keys"][0]["signer"].as_str(), Some("acme:gateway"));
}

#[test]
fn a_receipt_is_registered_by_its_hash_under_the_policy_that_the_keys_command_prints() {
    let log = Log::sqlite();
    let service_address = free_address();
    log.configure(&format!("listen = \"{service_address}\""));
    let upstream = McpServer::ordinary();
    let gateway = Gateway::before(&upstream.url()).logging_to(&format!("http://{service_address}"));
    let gateway = gateway.demanding_chains().table("receipts = \"hash\"");
    let printed = gateway.tabellion(&["gateway", "keys", "--config", "gateway.toml"]);
    printed.must_succeed();
    let policy = testkit::policy_toml();
    let (head, _) = policy.split_once("[[issuer]]").unwrap();
    log.set_policy(&format!("{head}{}", printed.stdout));
    let (service, running) = (log.serve(), gateway.start());
    let chain = root(|_| ());
    let text: Value = serde_json::from_slice(&chain.canonical()).unwrap();
    let proof = proof(&chain, AGENTS[0], "crm.read", &json!({}), black_box::gateway::GATEWAY);
    let meta = json!({ "dev.tabellion/roa": text, "dev.tabellion/roa-proof": proof });
    let served = running.modern().call("crm.read", json!({}), meta);
    let receipt = served.result()["_meta"]["dev.tabellion/aer"]["receipt"].clone();
    assert_eq!(receipt["enforcement_outcome"], "permit");
    running.wait_for_metric("gateway_evidence_pending_records", |left| left == 0.0);
    let entries = receipts_on(&service, &running, 1);
    let id = entries[0]["entry_id"].as_str().unwrap();
    let registered = service.connection().get_as_auditor(&format!("/v1/entries/{id}/payload"));
    assert_eq!(
        format!("sha256:{}", HEXLOWER.encode(&registered.body)),
        input_hash(&receipt),
        "the log has the digest of the canonical receipt"
    );
}
