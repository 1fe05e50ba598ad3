//! AgentROA with a real log: an execution receipt is registered beside the decision that names it.

use std::time::{Duration, Instant};

use black_box::audit_trail::{must_be_whole, of_kind};
use black_box::{Gateway, GatewayProcess, Log, Scene, Service, free_address};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use testkit::McpServer;
use testkit::agentroa::{AGENTS, Chain, delegated, input_hash, proof, root, signed};

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
    let response =
        [served, denied].map(|response| response.result()["_meta"]["dev.tabellion/aer"]["receipt"].clone());
    assert_eq!(response.each_ref().map(|receipt| receipt["enforcement_outcome"].clone()), ["permit", "deny"]);
    assert_eq!(receipts_on(&scene.service, &scene.running, 2).as_array().unwrap().len(), 2);
    // Two decisions and one outcome.
    let records = scene.records(3);
    must_be_whole(&records);
    // Records come to the log in any order; `seq` has the order of the decisions.
    let mut decisions = of_kind(&records, "decision");
    decisions.sort_by_key(|decision| decision.payload["seq"].as_u64());
    let named: Vec<&Value> = decisions.iter().map(|record| &record.payload["aer_id"]).collect();
    assert_eq!(named, [&response[0]["aer_id"], &response[1]["aer_id"]]);
    assert_eq!(scene.upstream.calls(), 1);
}

/// The entries of delegation chains once the log has this many receipts and nothing is left to deliver.
fn chains_on(scene: &Scene, receipts: usize) -> Vec<Value> {
    receipts_on(&scene.service, &scene.running, receipts);
    scene.running.wait_for_metric("gateway_evidence_pending_records", |left| left == 0.0);
    let entries =
        scene.service.connection().get("/v1/entries?content_type=application/agentroa-chain%2Bjson");
    entries.json()["entries"].as_array().unwrap().clone()
}

/// Calls a tool as the last agent of a chain, and returns the decision of its execution receipt.
fn call_under(scene: &Scene, chain: &Chain) -> Value {
    let text: Value = serde_json::from_slice(&chain.canonical()).unwrap();
    let agent = AGENTS[chain.hops().len()];
    let proof = proof(chain, agent, "crm.read", &json!({}), black_box::gateway::GATEWAY);
    let meta = json!({ "dev.tabellion/roa": text, "dev.tabellion/roa-proof": proof });
    let answer = scene.running.modern().call("crm.read", json!({}), meta);
    answer.result()["_meta"]["dev.tabellion/aer"]["receipt"]["enforcement_outcome"].clone()
}

#[test]
fn each_chain_is_registered_once_unless_no_authorizer_signed_it() {
    let scene = Scene::built(McpServer::ordinary(), Gateway::demanding_chains);
    let chain = root(|_| ());
    let wide = delegated(&chain, |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:mail.*"]));
    let forged = {
        let members = serde_json::to_value(chain.root().document()).unwrap();
        Chain::new(signed(members, &[AGENTS[3]]), Vec::new())
    };
    let response = [&chain, &wide, &forged, &chain].map(|chain| call_under(&scene, chain));
    assert_eq!(response, ["permit", "deny", "deny", "permit"]);
    let entries = chains_on(&scene, 4);
    let mut subjects: Vec<String> =
        entries.iter().map(|entry| entry["sub"].as_str().unwrap().to_owned()).collect();
    let mut expected = [&chain, &wide].map(|chain| chain.digest().to_string());
    subjects.sort();
    expected.sort();
    assert_eq!(subjects, expected, "a chain that was denied too, and none that anyone can write");
    for entry in &entries {
        let path = format!("/v1/entries/{}/payload", entry["entry_id"].as_str().unwrap());
        let payload = scene.service.connection().get(&path).body;
        let registered = Chain::parse(&payload).unwrap();
        assert_eq!(
            (&registered.canonical(), registered.digest().to_string()),
            (&payload, entry["sub"].as_str().unwrap().to_owned())
        );
        assert_eq!(entry["iss"], black_box::gateway::GATEWAY);
    }
}

#[test]
fn an_operator_can_turn_the_registration_of_chains_off() {
    let without = |gateway: Gateway| gateway.demanding_chains().table("register_chains = false");
    let scene = Scene::built(McpServer::ordinary(), without);
    assert_eq!(call_under(&scene, &root(|_| ())), "permit");
    assert_eq!(chains_on(&scene, 1), Vec::<Value>::new());
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
    let chains = Some("application/agentroa-chain+json");
    assert!(types.iter().any(|listed| listed["content_type"].as_str() == chains), "{types:?}");
}

#[test]
fn a_receipt_is_registered_by_its_hash_under_the_printed_policy() {
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
