//! Calls under delegation chains that wait for an approver: what changed meanwhile counts when they go on.

use testkit::agentroa::{AGENTS, Chain, key_of, proof, registry, root};

use super::*;
use black_box::gateway::GATEWAY;

/// Calls of the tool `pay` wait for an approver.
const PAY_RULE: &str = "[[route.rule]]\nname = \"pay\"\ntool = \"pay\"\nthen = \"approve\"\n";

impl World {
    /// A gateway that demands chains, and whose payments wait for Carol.
    fn under_chains() -> Self {
        let listen = free_address();
        let guarded = Guarded::built(McpServer::ordinary(), |gateway| {
            CAROL.write_keys(&gateway);
            let approvals = format!("[approvals]\nlisten = \"{listen}\"\n{}", CAROL.table(""));
            gateway.demanding_chains().table("refresh = \"50ms\"").table(&approvals).route(PAY_RULE)
        });
        Self { guarded, listen }
    }

    /// Replaces the registry, and waits until the gateway denies a call under the chain.
    fn publish_against(&self, chain: &Chain, change: impl FnOnce(&mut Value)) -> String {
        let (file, new) =
            (self.guarded.gateway.path("registry.json"), self.guarded.gateway.path("registry.new"));
        fs::write(&new, registry(2, change)).unwrap();
        fs::rename(new, file).unwrap();
        self.until_denied(chain)
    }

    /// Repeats a call that needs no approval until it is denied, and returns the reason.
    #[track_caller]
    fn until_denied(&self, chain: &Chain) -> String {
        let begun = Instant::now();
        loop {
            let answer =
                self.guarded.running.modern().call("crm.read", json!({}), presented(chain, "crm.read"));
            if answer.verdict().word() == "denied" {
                return answer.verdict().reason().to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "{}", self.guarded.running.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn approve(&self) {
        self.approval(&CAROL, &["answer", &self.question()]).must_succeed();
    }
}

/// The `_meta` of a call by the first agent under a chain.
fn presented(chain: &Chain, tool: &str) -> Value {
    let text: Value = serde_json::from_slice(&chain.canonical()).unwrap();
    let proof = proof(chain, AGENTS[0], tool, &json!({}), GATEWAY);
    json!({ "dev.tabellion/roa": text, "dev.tabellion/roa-proof": proof })
}

/// Begins a payment, which waits for an approver.
fn begin_payment(world: &World, chain: &Chain) -> Coming {
    world.guarded.running.in_session().begin_call("pay", json!({}), presented(chain, "pay"))
}

fn revoking_root(chain: &Chain, registry: &mut Value) {
    let id = chain.root().document().envelope_id.to_string();
    revoke(registry, &json!({ "envelope": id }));
}

fn revoking_key(_: &Chain, registry: &mut Value) {
    revoke(registry, &json!({ "key": key_of(AGENTS[0]).public_key().jwk_thumbprint() }));
}

fn revoke(registry: &mut Value, subject: &Value) {
    let at = testkit::agentroa::in_seconds(0);
    registry["revocations"] = json!([{ "subject": subject, "sequence": 2, "revoked_at": at }]);
}

fn without_key(_: &Chain, registry: &mut Value) {
    registry["keys"].as_array_mut().unwrap().retain(|key| key["signer"] != AGENTS[0]);
}

fn with_other_policy(_: &Chain, registry: &mut Value) {
    registry["policies"][0]["policy_digest"] = format!("sha256:{}", "0".repeat(64)).into();
}

/// A change of the registry that concerns a chain.
type RegistryChange = fn(&Chain, &mut Value);

/// What an operator may do while a call waits, and the reason for which the call is then denied.
const CHANGES: [(RegistryChange, &str); 4] = [
    (revoking_root, "roa:envelope_revoked"),
    (revoking_key, "roa:envelope_revoked"),
    (without_key, "roa:invalid_signature"),
    (with_other_policy, "roa:policy_digest_mismatch"),
];

#[test]
fn an_approved_call_is_decided_under_the_registry_then_in_force() {
    for (change, reason) in CHANGES {
        let world = World::under_chains();
        let chain = root(|_| ());
        let mut coming = begin_payment(&world, &chain);
        world.approve();
        assert_eq!(Verdict::of(&coming.message().unwrap()).word(), "served", "while nothing changes");
        let mut coming = begin_payment(&world, &chain);
        world.question();
        assert_eq!(world.publish_against(&chain, |registry| change(&chain, registry)), reason);
        let before = world.calls();
        world.approve();
        let answer = coming.message().unwrap();
        must_have_denied(&answer, reason);
        let receipt = &answer["result"]["_meta"]["dev.tabellion/aer"]["receipt"];
        assert_eq!(receipt["enforcement_outcome"], "deny");
        assert_eq!(world.calls(), before, "{reason}");
    }
}

#[test]
fn in_the_newer_era_an_approved_call_is_denied_once_its_root_is_revoked() {
    let world = World::under_chains();
    let (chain, mut client) = (root(|_| ()), world.guarded.running.modern());
    let params = |more: Value| {
        let mut params = json!({ "name": "pay", "arguments": {}, "_meta": presented(&chain, "pay") });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let retry = retry_state(&client.request("tools/call", params(json!({}))));
    world.approve();
    world.publish_against(&chain, |registry| revoking_root(&chain, registry));
    let before = world.calls();
    let answer = client.request("tools/call", params(retry));
    assert_eq!(answer.verdict().reason(), "roa:envelope_revoked", "{answer:?}");
    assert_eq!(world.calls(), before);
}

#[test]
fn an_approved_call_is_decided_under_the_configuration_then_in_force() {
    let world = World::under_chains();
    let chain = root(|members| {
        members["authorized_scope"]["capabilities"] = json!(["mcp:crm.*", "mcp:erp.pay", "mcp:erp.crm.read"]);
    });
    let mut coming = begin_payment(&world, &chain);
    world.question();
    let file = world.guarded.gateway.path("gateway.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("server_id = \"crm\"", "server_id = \"erp\"")).unwrap();
    world.guarded.running.signal(rustix::process::Signal::HUP);
    // The proofs are for calls of the server crm.
    assert_eq!(world.until_denied(&chain), "roa:auth_strength_insufficient");
    let before = world.calls();
    world.approve();
    let answer = coming.message().unwrap();
    must_have_denied(&answer, "roa:auth_strength_insufficient");
    assert_eq!(world.calls(), before);
}
