//! AgentROA through a running gateway: threats to delegation chains, budgets, revocation, and receipts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use evidence::EvidenceStore;
use evidence_postgres::testing::Database;
use gateway::decision_writer::Clock;
use gateway::replay::{Hypothesis, ReplayedSession, explain};
use gateway::{Config, Gateway};
use registry_server::RegistryServer;
use roa::chain::Chain;
use roa::registry::DeltaList;
use roa::text::Sha256Digest;
use scitt::Signer;
use serde_json::{Value, json};
use testkit::agentroa::{
    AGENTS, delegated, in_seconds, key_of, proof, proof_for, registry, registry_table, root, write_registry,
};
use testkit::{McpRequest, McpServer, Responder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::calls::upstream_questions::asks_once;
use crate::client::{Agent, Answer, Reading, VAP};

const ISSUER: &str = "https://gw.example";
const AER: &str = "dev.tabellion/aer";

/// A gateway with a registry file, before a server whose identifier is `crm`.
struct Site {
    folder: tempfile::TempDir,
    gateway: Gateway,
    server: McpServer,
    /// The configuration.
    text: String,
}

/// A route that demands a chain, and no VAP.
const REQUIRED: &str = "without_vap = \"roa\"\nroa = \"required\"\n";
/// The same, and a person confirms calls of the tool `pay`.
const CONFIRMED: &str = "without_vap = \"roa\"\nroa = \"required\"\n\
    [[route.rule]]\nname = \"ask\"\ntool = \"pay\"\nthen = \"confirm\"\n";

impl Site {
    /// A route that demands a chain, and no VAP.
    async fn new() -> Self {
        Self::with(REQUIRED).await
    }

    async fn with(route: &str) -> Self {
        Self::configured(|server| config_text(server, route, "")).await
    }

    /// The same route at a gateway with its evidence in this database.
    async fn on(database: &Database) -> Self {
        let evidence = format!("evidence = \"{}\"\n", database.url());
        Self::configured(|server| config_text(server, REQUIRED, &evidence)).await
    }

    /// The same route at a gateway with these sources of the registry instead of the file.
    async fn reading(sources: &str) -> Self {
        let text = |server: &McpServer| config_text(server, REQUIRED, "");
        Self::configured(|server| text(server).replace("registry = \"registry.json\"", sources)).await
    }

    /// The same route behind the proxies of these settings, with a changed registry.
    async fn behind(proxies: &str, edit: impl FnOnce(&mut Value)) -> Self {
        let site = Self::configured(|server| config_text(server, REQUIRED, proxies)).await;
        site.publish(2, edit);
        site.restarted().await
    }

    /// The same route at a gateway with this clock.
    async fn at(clock: Clock) -> Self {
        Self::configured_at(|server| config_text(server, REQUIRED, ""), clock).await
    }

    async fn configured(text: impl FnOnce(&McpServer) -> String) -> Self {
        Self::configured_at(text, Clock::system()).await
    }

    async fn configured_at(text: impl FnOnce(&McpServer) -> String, clock: Clock) -> Self {
        Self::before(McpServer::ordinary(), text, clock).await
    }

    async fn before(server: McpServer, text: impl FnOnce(&McpServer) -> String, clock: Clock) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_registry(folder.path(), |_| ());
        write(folder.path(), "deltas.json", deltas(&[]));
        let text = text(&server);
        let gateway =
            Gateway::start_with_clock(Config::from_toml(&text, folder.path()).unwrap(), clock).await.unwrap();
        Self { folder, gateway, server, text }
    }

    /// The same gateway after a restart.
    async fn restarted(self) -> Self {
        self.restarted_after(|_| ()).await
    }

    /// The same gateway after a restart for which its state was removed.
    async fn restarted_without_state(self) -> Self {
        self.restarted_after(|folder| std::fs::remove_dir_all(folder.join("state")).unwrap()).await
    }

    async fn restarted_after(self, change: impl FnOnce(&Path)) -> Self {
        let Self { folder, gateway, server, text } = self;
        gateway.stop().await;
        change(folder.path());
        let gateway = Gateway::start(Config::from_toml(&text, folder.path()).unwrap()).await.unwrap();
        Self { folder, gateway, server, text }
    }

    fn client(&self) -> Agent {
        Agent { modern: true, ..Agent::nobody(format!("http://{}/mcp", self.gateway.address())) }
    }

    /// A call of the last agent of a chain, with its proof.
    async fn call(&self, chain: &Chain, tool: &str) -> Answer {
        self.call_by(chain, AGENTS[chain.hops().len()], tool).await
    }

    async fn call_by(&self, chain: &Chain, agent: &str, tool: &str) -> Answer {
        self.present(chain, Some(proof(chain, agent, tool, &json!({}), ISSUER)), tool).await
    }

    async fn present(&self, chain: &Chain, proof: Option<String>, tool: &str) -> Answer {
        self.client().ask("tools/call", call_params(chain, proof, tool)).await
    }

    /// A call without a proof, with a client certificate in the header.
    async fn call_with_certificate(&self, chain: &Chain, certificate: &str) -> Answer {
        let client = self.client();
        let message = client.message("tools/call", &call_params(chain, None, "crm.read"));
        let request = client.post(&message).header("client-cert", certificate);
        crate::client::read(request.send().await.unwrap()).await
    }

    /// A call of the tool `pay` by the last agent of a chain, which waits until a person confirms it.
    async fn call_that_waits(&self, chain: &Chain) -> WaitingCall {
        let proof = proof(chain, AGENTS[chain.hops().len()], "pay", &json!({}), ISSUER);
        self.call_that_waits_with(call_params(chain, Some(proof), "pay")).await
    }

    async fn call_that_waits_with(&self, params: Value) -> WaitingCall {
        let url = format!("http://{}/mcp", self.gateway.address());
        let agent = Agent::nobody(url).initialized(&json!({ "elicitation": {} })).await;
        let mut stream = agent.stream(&agent.message("tools/call", &params)).await;
        let question = stream.next().await;
        assert_eq!(question["method"], "elicitation/create", "a person is asked to confirm the call");
        WaitingCall { agent, stream, question }
    }

    /// Reads the configuration again, with another text in a place of it.
    async fn reload(&mut self, from: &str, to: &str) {
        let config = Config::from_toml(&self.text.replace(from, to), self.folder.path());
        assert!(self.gateway.reload(config).await);
    }

    /// Puts a version of the registry into the file.
    fn publish(&self, sequence: u64, edit: impl FnOnce(&mut Value)) {
        write(self.folder.path(), "registry.json", registry(sequence, edit));
    }

    /// Puts the version of another gateway's file into the file.
    fn publish_that_of(&self, other: &Site) {
        let bytes = std::fs::read(other.folder.path().join("registry.json")).unwrap();
        write(self.folder.path(), "registry.json", bytes);
    }

    async fn until_denied(&self, chain: &Chain, reason: &str) -> Answer {
        self.until_denied_for(chain, "crm.read", reason).await
    }

    /// Repeats a call until it is denied for this reason.
    async fn until_denied_for(&self, chain: &Chain, tool: &str, reason: &str) -> Answer {
        for _ in 0..200 {
            let answer = self.call(chain, tool).await;
            if answer.reason() == reason {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("no call is denied for {reason}");
    }

    /// Repeats a call under new envelopes until it is served.
    async fn until_served(&self) -> Answer {
        for _ in 0..200 {
            let answer = self.call(&root(|_| ()), "crm.read").await;
            if answer.verdict() == "served" {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("no call is served");
    }

    /// Puts a version in force that revokes an envelope, which no other call uses.
    async fn publish_until_in_force(&self, sequence: u64) {
        let revoked = root(|_| ());
        self.publish(sequence, revoking(&revoked, sequence));
        self.until_denied(&revoked, "roa:envelope_revoked").await;
    }

    /// Asserts that the gateway has no current registry: it denies a call under a valid chain for that reason.
    async fn assert_registry_unavailable(&self) {
        let answer = self.call(&root(|_| ()), "crm.read").await;
        assert_denial_code(answer, "roa:invalid_signature", "registry_unavailable");
    }
}

/// A change of the registry, which may concern the root of a chain.
type RegistryChange = fn(&Chain, &mut Value);

/// A call that waits until a person confirms it.
struct WaitingCall {
    agent: Agent,
    stream: Reading,
    question: Value,
}

impl WaitingCall {
    async fn confirmed(mut self) -> Answer {
        let yes = json!({ "action": "accept", "content": { "confirm": true } });
        assert_eq!(self.agent.respond(&self.question["id"], yes).await, 202);
        self.stream.answer().await
    }
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    // A reader sees the whole old file or the whole new one.
    let new = folder.join(format!("{name}.new"));
    std::fs::write(&new, content).unwrap();
    std::fs::rename(&new, folder.join(name)).unwrap();
}

fn config_text(server: &McpServer, route: &str, top: &str) -> String {
    let (agentroa, upstream) = (registry_table(), server.url());
    format!(
        "issuer = \"{ISSUER}\"\nlisten = \"127.0.0.1:0\"\nstate = \"state\"\n{top}\
         [log]\nurl = \"http://127.0.0.1:9\"\n{agentroa}refresh = \"50ms\"\n\
         [[route]]\npath = \"/mcp\"\nserver_id = \"crm\"\nupstream = \"{upstream}\"\n{route}"
    )
}

/// Revokes the root of a chain in a version of the registry.
fn revoking(chain: &Chain, sequence: u64) -> impl FnOnce(&mut Value) {
    let id = chain.root().document().envelope_id.to_string();
    move |registry| {
        let revocation =
            json!({ "subject": { "envelope": id }, "sequence": sequence, "revoked_at": in_seconds(0) });
        registry["revocations"].as_array_mut().unwrap().push(revocation);
    }
}

fn call_params(chain: &Chain, proof: Option<String>, tool: &str) -> Value {
    let mut meta = json!({ "dev.tabellion/roa": text(chain) });
    if let Some(proof) = proof {
        meta["dev.tabellion/roa-proof"] = proof.into();
    }
    json!({ "name": tool, "arguments": {}, "_meta": meta })
}

fn text(chain: &Chain) -> Value {
    serde_json::from_slice(&chain.canonical()).unwrap()
}

fn receipt(answer: &Answer) -> Value {
    answer.meta(AER)["receipt"].clone()
}

/// Why a call was denied, as its receipt says: the reason, its code, and the hop of the chain that is at fault.
#[derive(Debug, PartialEq)]
struct Denial {
    reason: String,
    code: String,
    hop: Option<u64>,
}

impl Denial {
    fn without_hop(reason: &str, code: &str) -> Self {
        Self { reason: reason.to_owned(), code: code.to_owned(), hop: None }
    }

    fn at_hop(hop: u64, reason: &str, code: &str) -> Self {
        Self { hop: Some(hop), ..Self::without_hop(reason, code) }
    }

    /// The denial in the receipt of an answer.
    fn of(answer: &Answer) -> Self {
        let receipt = receipt(answer);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let detail = &receipt["denial_detail"];
        Self {
            reason: text(&receipt["denial_reason"]),
            code: text(&detail["code"]),
            hop: detail["hop"].as_u64(),
        }
    }
}

/// Asserts that a call was denied for exactly this, and that no call has reached the server.
fn assert_denied(site: &Site, answer: &Answer, expected: Denial) {
    answer.clone().denied(&format!("roa:{}", expected.reason));
    assert_eq!(Denial::of(answer), expected, "{answer:?}");
    assert_eq!(receipt(answer)["enforcement_outcome"], "deny", "{answer:?}");
    assert_eq!(site.server.calls(), 0, "no call reaches the server");
}

/// Asserts that a call was denied for this reason, whose code in the receipt is this.
fn assert_denial_code(answer: Answer, reason: &str, code: &str) {
    let answer = answer.denied(reason);
    assert_eq!(Denial::of(&answer).code, code, "{answer:?}");
}

/// A configuration of a route that demands a chain, with the servers `crm` and `docs`, which are one and the same.
fn config_of_two_servers(server: &McpServer) -> String {
    let servers = ["crm", "docs"]
        .map(|prefix| format!("[[route.server]]\nprefix = \"{prefix}\"\nupstream = \"{}\"\n", server.url()));
    let upstream = format!("server_id = \"crm\"\nupstream = \"{}\"\n", server.url());
    config_text(server, REQUIRED, "").replace(&upstream, "") + &servers.concat()
}

#[tokio::test]
async fn r_13_a_name_with_the_prefix_of_no_server_is_denied_with_a_receipt() {
    let site = Site::configured(config_of_two_servers).await;
    let long = format!("{}__x", "a".repeat(300));
    for name in ["__x", "a.b__x", &long, "crm.read", "CRM__crm.read"] {
        let answer = site.present(&root(|_| ()), None, name).await;
        assert_denied(&site, &answer, Denial::without_hop("capability_not_in_scope", "no_capability"));
        let action = &receipt(&answer)["action"];
        assert_eq!((&action["mcp_server_id"], &action["mcp_tool_name"]), (&json!("none"), &json!(name)));
    }
    let chain = root(|_| ());
    let proof = proof(&chain, AGENTS[0], "crm.read", &json!({}), ISSUER);
    let answer = site.present(&chain, Some(proof), "crm__crm.read").await.served();
    assert_eq!(receipt(&answer)["action"]["capability"], "mcp:crm.crm.read");
    site.gateway.stop().await;
}

/// The parameters of a call under a chain, with the answer to a question that the server asked.
fn params_with_answer(chain: &Chain, question: &Answer, tool: &str) -> Value {
    let proof = proof(chain, AGENTS[0], tool, &json!({}), ISSUER);
    let mut params = call_params(chain, Some(proof), tool);
    params["requestState"] = question.reply()["result"]["requestState"].clone();
    params["inputResponses"] = json!({ "city": { "action": "accept", "content": { "city": "Bern" } } });
    params
}

#[tokio::test]
async fn v_38_the_answer_to_a_question_of_the_server_is_counted_once_under_an_envelope() {
    let server = McpServer::scripted(asks_once(json!("theirs")));
    let site = Site::before(server, |server| config_text(server, REQUIRED, ""), Clock::system()).await;
    let counted = |ceiling: u32| {
        root(move |root| {
            root["authorized_scope"]["budget_ceiling"] = ceiling.into();
            root["authorized_scope"]["budget_unit"] = "api_calls".into();
        })
    };
    let chain = counted(1);
    let question = site.call(&chain, "crm.read").await.served();
    let answer = async |params: Value| site.client().ask("tools/call", params).await;
    let served = answer(params_with_answer(&chain, &question, "crm.read")).await.served();
    assert_eq!(served.reply()["result"]["content"][0]["text"], "known");
    answer(params_with_answer(&chain, &question, "crm.read")).await.denied("roa:budget_expansion_denied");
    answer(params_with_answer(&chain, &question, "pay")).await.denied("roa:budget_expansion_denied");
    assert_eq!(site.server.calls(), 2);
    site.gateway.stop().await;
}

#[tokio::test]
async fn the_strictest_of_all_classes_of_a_tool_counts() {
    let classes = "[route.tool_class]\n\"crm.*\" = { price = 1, slo = 3, classification = \"public\" }\n\
                   \"crm.read\" = { price = 3, slo = 1, classification = \"secret\" }\n";
    let site = Site::with(&format!("{REQUIRED}{classes}")).await;
    let bounds: [(&str, Value, &str); 3] = [
        ("price_class", json!(2), "budget_expansion_denied"),
        ("slo_class", json!(2), "slo_relaxation_denied"),
        ("data_classification_ceiling", json!("public"), "scope_expansion_violation"),
    ];
    for (member, bound, reason) in bounds {
        let chain = root(|root| root["authorized_scope"][member] = bound);
        site.call(&chain, "crm.read").await.denied(&format!("roa:{reason}"));
    }
    site.gateway.stop().await;
}

#[tokio::test]
async fn a_call_under_a_chain_of_three_is_served_and_its_receipt_is_returned() {
    let site = Site::new().await;
    let chain = delegated(&delegated(&root(|_| ()), |_| ()), |_| ());
    let answer = site.call(&chain, "crm.read").await.served();
    let receipt = receipt(&answer);
    assert_eq!(
        (&receipt["enforcement_outcome"], &receipt["enforcement_mode"]),
        (&json!("permit"), &json!("normal"))
    );
    assert_eq!(receipt["chain_summary"]["chain_depth"], 2);
    assert_eq!(receipt["session"]["agent_id"], AGENTS[2]);
    assert_eq!(receipt["action"]["capability"], "mcp:crm.crm.read");
    let read = roa::aer::SignedReceipt::parse(&jose::jcs::canonical(&receipt)).unwrap();
    let key = site.gateway.keys().evidence.public_key().clone();
    read.verify(|_| vec![&key]).unwrap();
    assert!(answer.meta(AER)["audit_ref"].as_str().unwrap().starts_with("http://127.0.0.1:9/entries/"));
    assert!(
        !site.server.messages_of("tools/call")[0].to_string().contains("roa"),
        "nothing of it is forwarded"
    );
}

#[tokio::test]
async fn a_call_without_a_chain_is_denied_and_has_a_receipt_of_its_own() {
    let site = Site::new().await;
    let answer = site.client().plain("crm.read", json!({})).await;
    assert_denied(&site, &answer, Denial::without_hop("chain_integrity_violation", "no_envelope"));
    assert_eq!(receipt(&answer)["chain_summary"]["root_envelope_id"], "env:0000000000000000");
}

#[tokio::test]
async fn a_denial_of_an_agent_with_a_proof_has_a_receipt_however_many_strangers_are_denied() {
    let site = Site::new().await;
    for _ in 0..12 {
        site.client().plain("crm.read", json!({})).await.denied("roa:chain_integrity_violation");
    }
    let chain = root(|members| members["authorized_scope"]["capabilities"] = json!(["mcp:crm.crm.read"]));
    let denied = site.call(&chain, "pay").await.denied("roa:capability_not_in_scope");
    assert_eq!(receipt(&denied)["enforcement_outcome"], "deny", "{denied:?}");
    let thief = site.call_by(&chain, AGENTS[1], "crm.read").await;
    assert_denied(&site, &thief, Denial::without_hop("auth_strength_insufficient", "presenter_mismatch"));
}

#[tokio::test]
async fn an_envelope_serves_only_its_agent_with_a_proof_for_the_call() {
    let site = Site::new().await;
    let chain = root(|_| ());
    let thief = site.call_by(&chain, AGENTS[1], "crm.read").await;
    assert_denied(&site, &thief, Denial::without_hop("auth_strength_insufficient", "presenter_mismatch"));
    let silent = site.present(&chain, None, "crm.read").await;
    assert_denied(&site, &silent, Denial::without_hop("auth_strength_insufficient", "presenter_missing"));
    let of_another_tool = proof(&chain, AGENTS[0], "pay", &json!({}), ISSUER);
    let answer = site.present(&chain, Some(of_another_tool), "crm.read").await;
    assert_denied(&site, &answer, Denial::without_hop("auth_strength_insufficient", "proof_mismatch"));
    let of_another_gateway = proof(&chain, AGENTS[0], "crm.read", &json!({}), "https://other.example");
    let answer = site.present(&chain, Some(of_another_gateway), "crm.read").await;
    assert_denied(&site, &answer, Denial::without_hop("auth_strength_insufficient", "proof_audience"));
}

#[tokio::test]
async fn a_trusted_proxys_client_certificate_identifies_the_agent() {
    let own = |registry: &mut Value| {
        let digest = Sha256Digest::of(b"certificate of the lead").to_string();
        registry["agents"] = json!([{ "agent_id": AGENTS[0], "certificates": [digest] }]);
    };
    let field = |der: &str| format!(":{}:", data_encoding::BASE64.encode(der.as_bytes()));
    let (lead, other) = (field("certificate of the lead"), field("another certificate"));
    let site = Site::behind("certificate_proxies = [\"127.0.0.1\"]\n", own).await;
    let chain = root(|_| ());
    site.call_with_certificate(&chain, &lead).await.served();
    let answer = site.call_with_certificate(&chain, &other).await;
    assert_denial_code(answer, "roa:auth_strength_insufficient", "presenter_mismatch");
    assert_eq!(site.call_with_certificate(&chain, "no byte sequence").await.status, 400);
    assert_eq!(site.server.calls(), 1);
    assert!(site.server.seen().iter().all(|seen| seen.header("client-cert").is_none()));
    for untrusted in ["", "certificate_proxies = [\"192.0.2.1\"]\n"] {
        let site = Site::behind(untrusted, own).await;
        let answer = site.call_with_certificate(&root(|_| ()), &lead).await;
        assert_denied(&site, &answer, Denial::without_hop("auth_strength_insufficient", "presenter_missing"));
    }
}

#[tokio::test]
async fn a_proof_counts_once() {
    let site = Site::new().await;
    let chain = root(|_| ());
    let proof = proof(&chain, AGENTS[0], "crm.read", &json!({}), ISSUER);
    site.present(&chain, Some(proof.clone()), "crm.read").await.served();
    let again = site.present(&chain, Some(proof), "crm.read").await;
    assert_denial_code(again, "roa:replay_detected", "proof_used");
    site.call(&chain, "crm.read").await.served();
    assert_eq!(site.server.calls(), 2);
}

#[tokio::test]
async fn a_grafted_hop_and_a_swapped_unit_are_denied_at_their_hop() {
    let site = Site::new().await;
    let budget = |amount: u64, unit: &'static str| {
        move |members: &mut Value| {
            let scope = match members.get("authorized_scope") {
                Some(_) => "authorized_scope",
                None => "delegated_scope",
            };
            members[scope]["budget_ceiling"] = amount.into();
            members[scope]["budget_unit"] = unit.into();
        }
    };
    let first = delegated(&root(budget(5000, "tokens")), |_| ());
    let grafted = delegated(&first, |members| members["delegating_agent"]["agent_id"] = AGENTS[3].into());
    let answer = site.call(&grafted, "crm.read").await;
    assert_denied(&site, &answer, Denial::at_hop(2, "chain_integrity_violation", "holder"));
    let swapped = delegated(&first, budget(4000, "USD"));
    let answer = site.call(&swapped, "crm.read").await;
    assert_denied(&site, &answer, Denial::at_hop(2, "budget_expansion_denied", "unit"));
}

#[tokio::test]
async fn a_wider_scope_at_the_third_hop_is_denied_there() {
    let site = Site::new().await;
    let narrow =
        |members: &mut Value| members["delegated_scope"]["capabilities"] = json!(["mcp:crm.crm.read"]);
    let chain = delegated(&delegated(&root(|_| ()), narrow), narrow);
    let wide =
        delegated(&chain, |members| members["delegated_scope"]["capabilities"] = json!(["mcp:crm.pay"]));
    let answer = site.call(&wide, "pay").await;
    assert_denied(&site, &answer, Denial::at_hop(3, "scope_expansion_violation", "capabilities"));
}

#[tokio::test]
async fn an_old_wildcard_covers_only_the_tools_of_its_time() {
    let site = Site::new().await;
    let old = root(|_| ());
    site.call(&old, "crm.read").await.served();
    site.publish(2, |registry| registry["servers"][0]["tools"] = json!(["crm.read", "pay", "crm.purge"]));
    let revoked = root(|_| ());
    // A version with a later number is in force once it revokes an envelope that this test uses for nothing else.
    site.publish(3, |registry| {
        registry["servers"][0]["tools"] = json!(["crm.read", "pay", "crm.purge"]);
        revoking(&revoked, 3)(registry);
    });
    site.until_denied(&revoked, "roa:envelope_revoked").await;
    let answer = site.call(&old, "crm.purge").await;
    assert_denial_code(answer, "roa:capability_not_in_scope", "capability");
    site.call(&root(|_| ()), "crm.purge").await.served();
}

#[tokio::test]
async fn a_revocation_outlasts_the_return_of_an_older_version() {
    let site = Site::new().await;
    let chain = root(|_| ());
    site.call(&chain, "crm.read").await.served();
    let before = std::fs::read(site.folder.path().join("registry.json")).unwrap();
    site.publish(2, revoking(&chain, 2));
    let answer = site.until_denied(&chain, "roa:envelope_revoked").await;
    assert_eq!(receipt(&answer)["revocation"], json!({ "epoch": 1, "sequence": 2 }));
    write(site.folder.path(), "registry.json", before);
    tokio::time::sleep(Duration::from_millis(200)).await;
    site.call(&chain, "crm.read").await.denied("roa:envelope_revoked");
}

#[tokio::test]
async fn a_restart_refuses_an_older_version_of_the_registry() {
    let site = Site::new().await;
    site.publish_until_in_force(3).await;
    site.publish(1, |_| ());
    let site = site.restarted().await;
    site.assert_registry_unavailable().await;
    site.publish(2, |_| ());
    let site = site.restarted().await;
    site.assert_registry_unavailable().await;
    site.publish(4, |_| ());
    site.until_served().await;
}

/// The same registry with another policy in force, which revokes nothing.
fn other_content(registry: &mut Value) {
    registry["policies"][0]["policy_digest"] = Sha256Digest::of(b"other").to_string().into();
}

#[tokio::test]
async fn a_restart_refuses_another_document_with_the_number_in_force() {
    let database = Database::fresh().await;
    for site in [Site::new().await, Site::on(&database).await] {
        site.call(&root(|_| ()), "crm.read").await.served();
        site.publish(1, other_content);
        let site = site.restarted().await;
        site.assert_registry_unavailable().await;
        // Another time of issue is no other content.
        site.publish(1, |registry| registry["issued_at"] = in_seconds(-1).into());
        let site = site.restarted().await;
        site.call(&root(|_| ()), "crm.read").await.served();
        site.publish(2, other_content);
        site.until_denied(&root(|_| ()), "roa:policy_digest_mismatch").await;
    }
}

#[tokio::test]
async fn gateways_on_one_database_accept_one_document_per_number() {
    let database = Database::fresh().await;
    let (one, other) = (Site::on(&database).await, Site::on(&database).await);
    let revoked = root(|_| ());
    one.publish(2, revoking(&revoked, 2));
    one.until_denied(&revoked, "roa:envelope_revoked").await;
    other.publish(2, |_| ());
    tokio::time::sleep(Duration::from_millis(200)).await;
    other.assert_registry_unavailable().await;
    other.publish_that_of(&one);
    other.until_served().await;
}

#[tokio::test]
async fn a_restart_refuses_a_registry_without_its_deltas_in_force() {
    let site = Site::reading("registry = \"registry.json\"\ndeltas = \"deltas.json\"").await;
    let chain = root(|_| ());
    let revocation = deltas(&[&chain]);
    write(site.folder.path(), "deltas.json", &revocation);
    site.until_denied(&chain, "roa:envelope_revoked").await;
    write(site.folder.path(), "deltas.json", deltas(&[]));
    let site = site.restarted().await;
    site.assert_registry_unavailable().await;
    write(site.folder.path(), "deltas.json", &revocation);
    site.until_served().await;
    site.call(&chain, "crm.read").await.denied("roa:envelope_revoked");
}

#[tokio::test]
async fn gateways_on_one_database_refuse_versions_below_the_one_in_force() {
    let database = Database::fresh().await;
    let (one, other) = (Site::on(&database).await, Site::on(&database).await);
    let revoked = root(|_| ());
    one.publish(2, revoking(&revoked, 2));
    one.until_denied(&revoked, "roa:envelope_revoked").await;
    other.assert_registry_unavailable().await;
    other.publish_that_of(&one);
    other.until_served().await;
    other.call(&revoked, "crm.read").await.denied("roa:envelope_revoked");
}

#[tokio::test]
async fn a_confirmed_call_is_decided_under_the_registry_then_in_force() {
    let revoking_key = |_: &Chain, registry: &mut Value| {
        let thumbprint = key_of(AGENTS[0]).public_key().jwk_thumbprint();
        registry["revocations"] =
            json!([{ "subject": { "key": thumbprint }, "sequence": 2, "revoked_at": in_seconds(0) }]);
    };
    let without_key = |_: &Chain, registry: &mut Value| {
        registry["keys"].as_array_mut().unwrap().retain(|key| key["signer"] != AGENTS[0]);
    };
    let other_policy = |_: &Chain, registry: &mut Value| {
        registry["policies"][0]["policy_digest"] = Sha256Digest::of(b"other").to_string().into();
    };
    let changes: [(&str, RegistryChange); 4] = [
        ("roa:envelope_revoked", |chain, registry| revoking(chain, 2)(registry)),
        ("roa:envelope_revoked", revoking_key),
        ("roa:invalid_signature", without_key),
        ("roa:policy_digest_mismatch", other_policy),
    ];
    for (reason, change) in changes {
        let site = Site::with(CONFIRMED).await;
        let chain = root(|_| ());
        site.call_that_waits(&chain).await.confirmed().await.served();
        let waiting = site.call_that_waits(&chain).await;
        site.publish(2, |registry| change(&chain, registry));
        site.until_denied(&chain, reason).await;
        let calls = site.server.calls();
        let answer = waiting.confirmed().await.denied(reason);
        assert_eq!(receipt(&answer)["enforcement_outcome"], "deny");
        assert_eq!(site.server.calls(), calls, "{reason}");
    }
}

#[tokio::test]
async fn a_confirmed_call_is_decided_under_the_configuration_then_in_force() {
    let mut site = Site::with(CONFIRMED).await;
    let both =
        root(|members| members["authorized_scope"]["capabilities"] = json!(["mcp:crm.*", "mcp:erp.pay"]));
    let waiting = site.call_that_waits(&both).await;
    site.reload("server_id = \"crm\"", "server_id = \"erp\"").await;
    // The proof was made for a call of mcp:crm.pay.
    let answer = waiting.confirmed().await;
    assert_denial_code(answer, "roa:auth_strength_insufficient", "proof_mismatch");
    let mut site = Site::with(CONFIRMED).await;
    let five = root(|members| {
        members["authorized_scope"]["budget_ceiling"] = 5.into();
        members["authorized_scope"]["budget_unit"] = "EUR".into();
    });
    let waiting = site.call_that_waits(&five).await;
    site.reload(CONFIRMED, &format!("{CONFIRMED}[route.cost]\ndefault = {{ EUR = 6 }}\n")).await;
    let answer = waiting.confirmed().await;
    assert_denial_code(answer, "roa:budget_expansion_denied", "spent");
    assert_eq!(site.server.calls(), 0);
}

#[tokio::test]
async fn a_waiting_call_needs_a_chain_once_its_route_requires_one() {
    let open = CONFIRMED.replace("\"roa\"\nroa = \"required\"", "\"restricted\"\nrestricted = [\"*\"]");
    let mut site = Site::with(&open).await;
    let waiting = site.call_that_waits_with(json!({ "name": "pay", "arguments": {} })).await;
    site.reload(&open, CONFIRMED).await;
    let answer = waiting.confirmed().await.denied("roa:chain_integrity_violation");
    assert_eq!(Denial::of(&answer).code, "no_envelope");
    assert_eq!(site.server.calls(), 0);
}

#[tokio::test]
async fn what_expired_stays_expired_when_the_clock_is_set_back() {
    let ahead = Arc::new(AtomicU64::new(0));
    let added = ahead.clone();
    let clock = Clock::of(move || Clock::system().milliseconds() + added.load(Ordering::Relaxed));
    let site = Site::at(clock).await;
    let set = |seconds: u64| ahead.store(seconds * 1000, Ordering::Relaxed);
    let (short, long) = (root(|_| ()), root(|members| members["expires_at"] = in_seconds(86_400).into()));
    let proof = proof(&long, AGENTS[0], "crm.read", &json!({}), ISSUER);
    site.call(&short, "crm.read").await.served();
    site.call(&long, "crm.read").await.served();
    set(700);
    site.call(&short, "crm.read").await.denied("roa:envelope_expired");
    site.present(&long, Some(proof.clone()), "crm.read").await.denied("roa:auth_strength_insufficient");
    set(0);
    site.call(&short, "crm.read").await.denied("roa:envelope_expired");
    let answer = site.present(&long, Some(proof), "crm.read").await;
    assert_denial_code(answer, "roa:auth_strength_insufficient", "proof_time");
    std::fs::remove_file(site.folder.path().join("registry.json")).unwrap();
    set(8000);
    let answer = site.call(&long, "crm.read").await;
    assert_denial_code(answer, "roa:invalid_signature", "registry_unavailable");
    set(0);
    let answer = site.call(&long, "crm.read").await;
    assert_denial_code(answer, "roa:invalid_signature", "registry_unavailable");
    assert_eq!(site.server.calls(), 2);
}

#[tokio::test]
async fn a_budget_of_calls_is_one_for_all_descendants_and_outlives_a_restart() {
    let site = Site::new().await;
    let chain = root(|members| {
        members["authorized_scope"]["budget_ceiling"] = 2.into();
        members["authorized_scope"]["budget_unit"] = "api_calls".into();
    });
    site.call(&chain, "crm.read").await.served();
    let site = site.restarted().await;
    site.call(&delegated(&chain, |_| ()), "crm.read").await.served();
    let answer = site.call(&chain, "crm.read").await.denied("roa:budget_expansion_denied");
    assert_eq!(Denial::of(&answer), Denial::at_hop(0, "budget_expansion_denied", "spent"));
    assert_eq!(receipt(&answer)["denial_detail"]["dimension"], "budget");
}

/// Sets the budget of a root envelope.
fn with_budget(members: &mut Value, ceiling: u32, unit: &str) {
    members["authorized_scope"]["budget_ceiling"] = ceiling.into();
    members["authorized_scope"]["budget_unit"] = unit.into();
}

#[tokio::test]
async fn r_18_another_envelope_with_the_same_identifiers_does_not_open_another_budget() {
    let site = Site::new().await;
    let first = root(|members| with_budget(members, 1, "api_calls"));
    site.call(&first, "crm.read").await.served();
    let id = first.root().document().envelope_id.to_string();
    let other = root(|members| {
        members["envelope_id"] = id.into();
        members["expires_at"] = in_seconds(1200).into();
        with_budget(members, 2, "api_calls");
    });
    assert_denial_code(site.call(&other, "crm.read").await, "roa:replay_detected", "other_envelope");
    assert_denial_code(site.call(&first, "crm.read").await, "roa:budget_expansion_denied", "spent");
    assert_eq!(site.server.calls(), 1);
}

#[tokio::test]
async fn r_18_the_use_of_an_envelope_is_kept_until_five_minutes_after_its_end() {
    let database = Database::fresh().await;
    let site = Site::on(&database).await;
    let chain = root(|_| ());
    site.call(&chain, "crm.read").await.served();
    let store = database.store("reader").await;
    let streams = store.list(None, 1000).await.unwrap();
    let used = streams.iter().find(|stream| stream.stream.starts_with("unbound:.roa:")).unwrap();
    let ends = chain.root().document().expires_at.unix_seconds();
    assert_eq!(i64::try_from(used.keep_until).unwrap(), ends + 300);
    site.gateway.stop().await;
}

/// Answers a call, which costs two euros.
fn cost_two_euros(seen: &McpRequest, wire: &mut Responder) {
    let result = json!({ "content": [], "_meta": { VAP: { "cost": { "EUR": 2 } } } });
    wire.respond(&seen.result(&result));
}

/// A server whose calls take a moment, and cost two euros each.
fn two_euros_each() -> McpServer {
    McpServer::scripted(|seen, wire| {
        let is_call = seen.rpc() == "tools/call";
        if is_call {
            std::thread::sleep(Duration::from_millis(30));
            cost_two_euros(seen, wire);
        }
        is_call
    })
}

/// A server that holds its calls until the flag is set. They cost two euros each.
fn two_euros_each_once_released() -> (McpServer, Arc<AtomicBool>) {
    let released = Arc::new(AtomicBool::new(false));
    let goes_on = released.clone();
    let server = McpServer::scripted(move |seen, wire| {
        let is_call = seen.rpc() == "tools/call";
        if is_call {
            let begun = Instant::now();
            while !goes_on.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(5));
            }
            cost_two_euros(seen, wire);
        }
        is_call
    });
    (server, released)
}

/// Waits until this number of calls has reached a server.
async fn until_calls(server: &McpServer, count: usize) {
    for _ in 0..400 {
        if server.calls() >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{} calls have reached the server, not {count}", server.calls());
}

/// Copies a folder with its content.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &copy),
            false => _ = std::fs::copy(entry.path(), copy).unwrap(),
        }
    }
}

#[tokio::test]
async fn r_48_parallel_calls_of_unknown_cost_stay_within_the_budget_of_an_envelope() {
    let text = |server: &McpServer| config_text(server, REQUIRED, "");
    let site = Site::before(two_euros_each(), text, Clock::system()).await;
    let chain = root(|members| with_budget(members, 5, "EUR"));
    let answers = futures::future::join_all((0..8).map(|_| site.call(&chain, "crm.read"))).await;
    let (served, others): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.verdict() == "served");
    assert_eq!((served.len(), site.server.calls()), (2, 2));
    for denied in others {
        assert_denial_code(denied, "roa:budget_expansion_denied", "spent");
    }
    site.gateway.stop().await;
}

#[tokio::test]
async fn r_48_a_call_does_not_wait_for_one_of_a_tool_of_the_same_name_on_another_server() {
    let ((crm, crm_released), (docs, docs_released)) =
        (two_euros_each_once_released(), two_euros_each_once_released());
    let docs_route = format!(
        "[[route]]\npath = \"/docs\"\nserver_id = \"docs\"\nupstream = \"{}\"\n{REQUIRED}",
        docs.url()
    );
    let text = |server: &McpServer| config_text(server, REQUIRED, "") + &docs_route;
    let site = Site::before(crm, text, Clock::system()).await;
    let chain = root(|members| {
        members["authorized_scope"]["capabilities"] = json!(["mcp:crm.crm.read", "mcp:docs.crm.read"]);
        with_budget(members, 50, "EUR");
    });
    let url = format!("http://{}/docs", site.gateway.address());
    let client = Agent { modern: true, ..Agent::nobody(url) };
    let call_docs = async || {
        let proof = proof_for(&chain, AGENTS[0], "mcp:docs.crm.read", &json!({}), ISSUER);
        client.ask("tools/call", call_params(&chain, Some(proof), "crm.read")).await
    };
    let a_moment = Duration::from_millis(200);
    let while_crm_is_held = async {
        until_calls(&site.server, 1).await;
        // The second call of `crm` is to be the first in the queue.
        tokio::time::sleep(a_moment).await;
        let release = async {
            until_calls(&docs, 1).await;
            tokio::time::sleep(a_moment).await;
            docs_released.store(true, Ordering::Relaxed);
        };
        let calls = async { tokio::join!(call_docs(), call_docs(), release) };
        let (first, second, ()) = tokio::time::timeout(Duration::from_secs(15), calls).await.unwrap();
        crm_released.store(true, Ordering::Relaxed);
        [first, second]
    };
    let call_crm = || site.call(&chain, "crm.read");
    let (one, other, of_docs) = tokio::join!(call_crm(), call_crm(), while_crm_is_held);
    [one, other].into_iter().chain(of_docs).for_each(|answer| drop(answer.served()));
    site.gateway.stop().await;
}

#[tokio::test]
async fn r_48_a_call_that_a_crash_cut_short_does_not_hold_up_the_next_one_of_its_tool() {
    let (server, released) = two_euros_each_once_released();
    let text = |server: &McpServer| config_text(server, REQUIRED, "");
    let site = Site::before(server, text, Clock::system()).await;
    let chain = root(|members| with_budget(members, 5, "EUR"));
    let crashed = tempfile::tempdir().unwrap();
    let crash = async {
        until_calls(&site.server, 1).await;
        copy_folder(&site.folder.path().join("state"), crashed.path());
        released.store(true, Ordering::Relaxed);
    };
    let (first, ()) = tokio::join!(site.call(&chain, "crm.read"), crash);
    first.served();
    let as_in_the_crash = |folder: &Path| {
        std::fs::remove_dir_all(folder.join("state")).unwrap();
        copy_folder(crashed.path(), &folder.join("state"));
    };
    let site = site.restarted_after(as_in_the_crash).await;
    let next = tokio::time::timeout(Duration::from_secs(30), site.call(&chain, "crm.read"));
    next.await.unwrap().served();
    site.gateway.stop().await;
}

#[tokio::test]
async fn r_48_a_call_of_unknown_cost_does_not_wait_on_an_advisory_route_and_its_receipt_says_so() {
    let route = "without_vap = \"restricted\"\nrestricted = [\"*\"]\nroa = \"advisory\"\n";
    let (server, released) = two_euros_each_once_released();
    let site = Site::before(server, |server| config_text(server, route, ""), Clock::system()).await;
    let chain = root(|members| with_budget(members, 5, "EUR"));
    let second = async {
        until_calls(&site.server, 1).await;
        let both_have_arrived = async {
            until_calls(&site.server, 2).await;
            released.store(true, Ordering::Relaxed);
        };
        tokio::join!(site.call(&chain, "crm.read"), both_have_arrived).0
    };
    let (first, second) = tokio::join!(site.call(&chain, "crm.read"), second);
    assert_eq!(receipt(&first)["enforcement_outcome"], "permit", "{first:?}");
    assert_eq!((second.verdict().as_str(), site.server.calls()), ("downgraded", 2));
    assert_eq!(Denial::of(&second), Denial::without_hop("budget_expansion_denied", "cost_unknown"));
    site.gateway.stop().await;
}

#[tokio::test]
async fn r_48_a_tool_without_a_configured_cost_is_denied_under_a_budget_where_costs_are_strict() {
    let site = Site::with(&format!("{REQUIRED}[route.cost]\nstrict = true\n")).await;
    let answer = site.call(&root(|members| with_budget(members, 5, "EUR")), "crm.read").await;
    assert_denied(&site, &answer, Denial::without_hop("budget_expansion_denied", "cost_unknown"));
    let of_calls = root(|members| with_budget(members, 5, "api_calls"));
    site.call(&of_calls, "crm.read").await.served();
    site.gateway.stop().await;
}

/// Serves a document to everyone who takes none from a cache, and returns its address.
async fn serve(document: Vec<u8>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/registry.json", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = client.read(&mut request).await;
            if !String::from_utf8_lossy(&request).contains("cache-control: no-cache") {
                continue;
            }
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", document.len());
            let _ = client.write_all(&[head.as_bytes(), &document].concat()).await;
        }
    });
    url
}

#[tokio::test]
async fn the_registry_may_be_fetched_and_must_be_signed_by_its_operator() {
    let fetching = |url: String| format!("registry_url = \"{url}\"");
    let site = Site::reading(&fetching(serve(registry(1, |_| ())).await)).await;
    site.call(&root(|_| ()), "crm.read").await.served();
    let forged = testkit::agentroa::signed::<roa::registry::RegistryDocument>(
        testkit::agentroa::registry_members(1),
        &["somebody"],
    );
    let site = Site::reading(&fetching(serve(forged.canonical().to_vec()).await)).await;
    let answer = site.call(&root(|_| ()), "crm.read").await;
    assert_denied(&site, &answer, Denial::without_hop("invalid_signature", "registry_unavailable"));
}

/// A list of deltas that revoke the roots of these chains, one after the other, from version 1 on.
fn deltas(chains: &[&Chain]) -> Vec<u8> {
    let mut list = DeltaList::default();
    for (previous, chain) in (1u64..).zip(chains) {
        let revocation = json!({
            "subject": { "envelope": chain.root().document().envelope_id.to_string() },
            "sequence": previous + 1, "revoked_at": in_seconds(0),
        });
        let members = json!({
            "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": 1,
            "previous_sequence": previous, "sequence": previous + 1, "issued_at": in_seconds(0),
            "revocations": [revocation],
        });
        list.push(testkit::agentroa::signed(members, &["operator"])).unwrap();
    }
    list.canonical()
}

#[tokio::test]
async fn a_delta_of_a_registry_server_revokes_an_envelope() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "registry.json", registry(1, |_| ()));
    write(folder.path(), "deltas.json", deltas(&[]));
    let server = RegistryServer::start(registry_server::Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        admin_listen: None,
        registry: folder.path().join("registry.json"),
        deltas: Some(folder.path().join("deltas.json")),
        operators: vec![key_of("operator").public_key().clone()],
        error_documentation: Default::default(),
    });
    let server = server.await.unwrap();
    let url = format!("http://{}", server.address());
    let sources = format!("registry_url = \"{url}/registry.json\"\ndeltas_url = \"{url}/deltas.json\"");
    let site = Site::reading(&sources).await;
    let (chain, other) = (root(|_| ()), root(|_| ()));
    site.call(&chain, "crm.read").await.served();
    write(folder.path(), "deltas.json", deltas(&[&chain]));
    let answer = site.until_denied(&chain, "roa:envelope_revoked").await;
    assert_eq!(receipt(&answer)["revocation"], json!({ "epoch": 1, "sequence": 2 }));
    site.call(&other, "crm.read").await.served();
    // The second delta is in force after the gateway has read the registry, which is still version 1, again.
    write(folder.path(), "deltas.json", deltas(&[&chain, &other]));
    site.until_denied(&other, "roa:envelope_revoked").await;
    site.call(&chain, "crm.read").await.denied("roa:envelope_revoked");
}

#[tokio::test]
async fn two_gateways_on_one_database_share_one_budget() {
    let database = Database::fresh().await;
    let (one, other) = (Site::on(&database).await, Site::on(&database).await);
    let chain = root(|members| {
        members["authorized_scope"]["budget_ceiling"] = 3.into();
        members["authorized_scope"]["budget_unit"] = "api_calls".into();
    });
    let calls = (0..8).map(|n| {
        let site = if n % 2 == 0 { &one } else { &other };
        site.call(&chain, "crm.read")
    });
    let answers = futures::future::join_all(calls).await;
    let served = answers.iter().filter(|answer| answer.verdict() == "served").count();
    assert_eq!((served, one.server.calls() + other.server.calls()), (3, 3));
    for denied in answers.into_iter().filter(|answer| answer.verdict() != "served") {
        assert_denial_code(denied, "roa:budget_expansion_denied", "spent");
    }
}

#[tokio::test]
async fn two_gateways_on_one_database_register_a_chain_once_between_them() {
    let database = Database::fresh().await;
    let (one, other) = (Site::on(&database).await, Site::on(&database).await);
    let chain = root(|_| ());
    let calls = (0..8).map(|n| if n % 2 == 0 { &one } else { &other }.call(&chain, "crm.read"));
    futures::future::join_all(calls).await.into_iter().for_each(|answer| drop(answer.served()));
    let store = database.store("reader").await;
    let mut streams = store.list(None, 1000).await.unwrap();
    streams.retain(|stream| stream.stream == format!("unbound:.roa-chain:{}", chain.digest()));
    assert_eq!(
        streams.iter().map(|stream| (stream.next_seq, stream.closed)).collect::<Vec<_>>(),
        [(1, true)]
    );
}

#[tokio::test]
async fn a_denied_chain_is_registered_only_if_its_agents_signed_it() {
    let database = Database::fresh().await;
    let site = Site::on(&database).await;
    let chain = root(|_| ());
    let wide = delegated(&chain, |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:mail.*"]));
    let other = Sha256Digest::of(b"another object").to_string();
    let grafted = delegated(&chain, |hop| hop["upstream_ref"]["ref_digest"] = other.into());
    site.call(&wide, "crm.read").await.denied("roa:scope_expansion_violation");
    site.call(&grafted, "crm.read").await.denied("roa:chain_integrity_violation");
    let store = database.store("reader").await;
    let streams = store.list(None, 1000).await.unwrap();
    let is_registered = |chain: &Chain| {
        let name = format!("unbound:.roa-chain:{}", chain.digest());
        streams.iter().any(|stream| stream.stream == name && stream.next_seq > 0)
    };
    assert!(is_registered(&wide) && !is_registered(&grafted));
}

#[tokio::test]
async fn a_gateway_without_its_state_refuses_earlier_envelopes() {
    let site = Site::new().await;
    let chain = root(|_| ());
    site.call(&chain, "crm.read").await.served();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let site = site.restarted_without_state().await;
    let answer = site.call(&chain, "crm.read").await;
    assert_denial_code(answer, "roa:replay_detected", "no_replay_state");
    site.call(&root(|_| ()), "crm.read").await.served();
}

#[tokio::test]
async fn a_stale_registry_allows_reads_where_the_route_says_so() {
    let reads =
        "degraded = \"reads\"\n[route.sensitivity]\n\"crm.read\" = \"reads\"\n\"pay\" = \"writes_money\"\n";
    for (route, permitted) in [(REQUIRED.to_owned(), false), (format!("{REQUIRED}{reads}"), true)] {
        let site = Site::with(&route).await;
        // The version is in force once it revokes this envelope.
        let revoked = root(|_| ());
        site.publish(2, |registry| {
            registry["ttl_seconds"] = 3.into();
            revoking(&revoked, 2)(registry);
        });
        site.until_denied(&revoked, "roa:envelope_revoked").await;
        std::fs::remove_file(site.folder.path().join("registry.json")).unwrap();
        let chain = root(|_| ());
        let answer = site.until_denied_for(&chain, "pay", "roa:invalid_signature").await;
        assert_eq!(Denial::of(&answer).code, "registry_unavailable");
        let read = site.call(&chain, "crm.read").await;
        match permitted {
            true => {
                assert_eq!(receipt(&read.served())["degraded_reason"], "registry_stale");
            }
            false => {
                read.denied("roa:invalid_signature");
            }
        }
    }
}

#[tokio::test]
async fn advisory_mode_serves_and_its_receipts_name_the_denial() {
    let site = Site::with("without_vap = \"restricted\"\nrestricted = [\"*\"]\nroa = \"advisory\"\n").await;
    let answer = site.client().plain("crm.read", json!({})).await;
    assert_eq!((answer.verdict().as_str(), site.server.calls()), ("downgraded", 1));
    assert_eq!(Denial::of(&answer).code, "no_envelope");
}

#[tokio::test]
async fn an_explanation_takes_a_call_as_authorized_where_a_chain_is_required_and_says_so() {
    let site = Site::new().await;
    let explained = |route: &str| {
        let config = Config::from_toml(&site.text.replace(REQUIRED, route), site.folder.path()).unwrap();
        let call = Hypothesis {
            route: "/mcp",
            session: None,
            tool: "crm.read",
            arguments: "{}",
            envelope: None,
            tool_fault: None,
            now: jiff::Timestamp::now(),
        };
        let explained = explain(&mut ReplayedSession::under(&config), &call).unwrap();
        (explained.decided.verdict, explained.presumes_chain)
    };
    assert_eq!(explained(REQUIRED), ("served".to_owned(), true));
    let advisory = "without_vap = \"deny\"\nroa = \"advisory\"\n";
    assert_eq!(explained(advisory), ("denied".to_owned(), false));
    site.gateway.stop().await;
}

#[tokio::test]
async fn a_call_needs_both_vap_and_agentroa_where_both_apply() {
    let site = Site::with("roa = \"required\"\n").await;
    let agent = Agent { token: None, mcp: Some("s-1".into()), modern: false, ..site.client() };
    let chain = root(|_| ());
    let without_chain = agent.call("crm.read", json!({})).await;
    assert_denial_code(without_chain, "roa:chain_integrity_violation", "no_envelope");
    let mut params = agent.call_params("crm.read", &json!({}));
    params["_meta"]["dev.tabellion/roa"] = text(&chain);
    params["_meta"]["dev.tabellion/roa-proof"] =
        proof(&chain, AGENTS[0], "crm.read", &json!({}), ISSUER).into();
    let without_commitment = agent.ask("tools/call", params).await.denied("no_commitment");
    assert_eq!(receipt(&without_commitment)["enforcement_outcome"], "permit", "AgentROA's decision alone");
    assert_eq!(site.server.calls(), 0);
}

#[tokio::test]
async fn a_chain_in_the_header_must_equal_the_one_in_meta() {
    let site = Site::new().await;
    let (chain, other) = (root(|_| ()), root(|_| ()));
    let header = |chain: &Chain| data_encoding::BASE64URL_NOPAD.encode(&chain.canonical());
    let proof_of = |chain: &Chain| proof(chain, AGENTS[0], "crm.read", &json!({}), ISSUER);
    let client = site.client();
    let send = async |meta: Value, header: String| {
        let params = json!({ "name": "crm.read", "arguments": {}, "_meta": meta });
        let message = client.message("tools/call", &params);
        crate::client::read(client.post(&message).header("agentroa", header).send().await.unwrap()).await
    };
    send(json!({ "dev.tabellion/roa-proof": proof_of(&chain) }), header(&chain)).await.served();
    let both = json!({ "dev.tabellion/roa": text(&other), "dev.tabellion/roa-proof": proof_of(&chain) });
    let answer = send(both, header(&chain)).await;
    assert_denial_code(answer, "roa:chain_integrity_violation", "malformed");
}

#[tokio::test]
async fn a_header_names_the_receipt_of_a_permit_and_of_a_denial() {
    let site = Site::new().await;
    let chain = root(|_| ());
    let client = site.client();
    for (proof, outcome) in
        [(Some(proof(&chain, AGENTS[0], "crm.read", &json!({}), ISSUER)), "permit"), (None, "deny")]
    {
        let message = client.message("tools/call", &call_params(&chain, proof, "crm.read"));
        let response = client.post(&message).send().await.unwrap();
        let named = response.headers()["agentroa-receipt"].to_str().unwrap().to_owned();
        let receipt = receipt(&crate::client::read(response).await);
        assert_eq!(receipt["enforcement_outcome"], outcome);
        let expected =
            format!("\"{}\"; entry=\"http://127.0.0.1:9/entries/", receipt["aer_id"].as_str().unwrap());
        assert!(named.starts_with(&expected), "{named}");
    }
}
