//! Approvals from outside of the client: in both eras, over the gateway and the approver's own commands. Nothing that the
//! client says is an approval.

mod under_chains;

use std::fs::{self, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use black_box::{
    Agent, Coming, Connection, Gateway, Guarded, McpAnswer, McpClient, Ran, Scene, Verdict, free_address,
    until,
};
use scitt::Signer as _;
use serde_json::{Value, json};
use testkit::McpServer;

/// Large payments wait for an approver.
const RULES: &str = r#"
[[route.rule]]
name = "large"
tool = "payments.send"
when = "input.arguments.amount > 1000"
then = "approve"
"#;
/// How long something may take that happens at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody outside of the client.
struct Approver {
    name: &'static str,
    seed: u8,
}

const CAROL: Approver = Approver { name: "carol", seed: 0x51 };
const MALLORY: Approver = Approver { name: "mallory", seed: 0x52 };

impl Approver {
    /// Puts the keys into a gateway's folder.
    fn write_keys(&self, gateway: &Gateway) {
        let key = testkit::ed25519([self.seed; 32]);
        let mut private = File::options();
        let path = gateway.path(&format!("{}.pem", self.name));
        let mut file = private.write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
        file.write_all(key.to_pkcs8_pem().unwrap().as_bytes()).unwrap();
        let public = key.public_key().to_jwk().to_value().to_string();
        fs::write(gateway.path(&format!("{}.pub.json", self.name)), public).unwrap();
    }

    /// The approver in the gateway's configuration.
    fn table(&self, more: &str) -> String {
        format!("[[approver]]\nname = \"{0}\"\njwk = \"{0}.pub.json\"\n{more}\n", self.name)
    }
}

/// A gateway whose large payments wait for Carol.
struct World {
    guarded: Guarded,
    listen: SocketAddr,
}

impl World {
    fn new() -> Self {
        Self::with("", "", "")
    }

    /// With more in the route, in the table of approvals, and in the approver's.
    fn with(route: &str, approvals: &str, approver: &str) -> Self {
        let listen = free_address();
        let guarded = Guarded::built(McpServer::ordinary(), |gateway| {
            [CAROL, MALLORY].iter().for_each(|approver| approver.write_keys(&gateway));
            gateway
                .table(&format!("[approvals]\nlisten = \"{listen}\"\n{approvals}\n{}", CAROL.table(approver)))
                .route(&format!("{route}\n{RULES}"))
        });
        Self { guarded, listen }
    }

    /// Runs an approver's command.
    fn approval(&self, approver: &Approver, arguments: &[&str]) -> Ran {
        let (url, key) = (format!("http://{}", self.listen), format!("{}.pem", approver.name));
        let mut all = vec!["gateway", "approval"];
        all.extend(arguments);
        all.extend(["--url", &url, "--key", &key, "--json"]);
        self.guarded.gateway.command(&all).output().unwrap().into()
    }

    /// The questions that wait for an approver, as soon as there are `count` of them.
    #[track_caller]
    fn questions(&self, count: usize) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let listed = self.approval(&CAROL, &["list"]).must_succeed().json();
            let questions = listed["questions"].as_array().unwrap().clone();
            if questions.len() == count {
                return questions;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "not {count} questions: {listed}\n{}",
                self.guarded.running.said()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The id of the one question that waits.
    #[track_caller]
    fn question(&self) -> String {
        self.questions(1)[0]["id"].as_str().unwrap().to_owned()
    }

    fn agent(&self) -> &Agent {
        &self.guarded.agent
    }

    fn calls(&self) -> usize {
        self.guarded.upstream.calls()
    }
}

fn large() -> Value {
    json!({ "amount": 5000, "to": "somebody" })
}

/// The parameters of a payment in the newer era, with whatever else belongs to a retry.
fn payment(agent: &Agent, arguments: &Value, more: &Value) -> Value {
    let intent = agent.signed(agent.intent("payments.send", arguments));
    let mut params = json!({ "name": "payments.send", "arguments": arguments, "_meta": { "vap": intent } });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

fn pay(agent: &Agent, client: &mut McpClient, arguments: &Value, more: &Value) -> McpAnswer {
    client.request("tools/call", payment(agent, arguments, more))
}

/// What the client brings back of an answer that tells it to wait, and asks it nothing.
fn retry_state(asked: &McpAnswer) -> Value {
    assert_eq!(asked.result()["resultType"], "input_required", "{asked:?}");
    assert!(asked.result().get("inputRequests").is_none(), "the client is asked nothing: {asked:?}");
    json!({ "requestState": asked.result()["requestState"] })
}

/// Begins a payment in the older era.
fn begin(agent: &Agent, client: &mut McpClient, arguments: &Value) -> Coming {
    let meta = json!({ "vap": agent.intent("payments.send", arguments) });
    client.begin_call("payments.send", arguments.clone(), meta)
}

/// Asserts that the call of a response was denied for this reason.
#[track_caller]
fn must_have_denied(response: &Value, reason: &str) {
    let verdict = Verdict::of(response);
    assert_eq!((verdict.word(), verdict.reason()), ("denied", reason), "{response}");
}

#[test]
fn in_the_newer_era_a_call_is_made_once_when_an_approver_has_signed_it() {
    let world = World::new();
    let (agent, mut client) = (world.agent(), world.guarded.running.modern());
    agent.commit_to(&mut client, json!({ "budget": { "max_calls": 2 } }));
    let asked = pay(agent, &mut client, &large(), &json!({}));
    let retry = retry_state(&asked);
    let id = world.question();
    let shown = world.approval(&CAROL, &["show", &id]).must_succeed().json();
    let subject = &shown["question"]["subject"];
    assert_eq!((&subject["tool"], &subject["kind"]), (&json!("payments.send"), &json!("call")), "{shown}");
    assert_eq!(subject["content"], "{\"amount\":5000,\"to\":\"somebody\"}", "{shown}");
    assert_eq!(
        (&shown["question"]["because"], &shown["approver"]),
        (&json!("policy:large"), &json!("carol"))
    );
    assert_eq!(world.calls(), 0, "nothing is sent before there is an answer");

    let digest = shown["digest"].as_str().unwrap();
    let answer =
        ["answer", &id, "--digest", digest, "--reason", "the invoice is ours", "--output", "kept.json"];
    world.approval(&CAROL, &answer).must_succeed();
    let response = pay(agent, &mut client, &large(), &retry);
    response.must_be_served();
    assert!(
        !response.message.to_string().contains("invoice"),
        "the reason is the approver's own: {response:?}"
    );
    let call = world.guarded.upstream.only_call();
    assert!(call.param("requestState").is_none(), "{}", call.text());

    // It is used up, and the question did not count as a call.
    let again = pay(agent, &mut client, &large(), &retry);
    assert_eq!(again.verdict().reason(), "invalid_state", "{again:?}");
    agent.call(&mut client, "echo", json!({})).must_be_served();
    agent.call(&mut client, "echo", json!({})).must_be_denied("budget_exceeded");
    assert_eq!(world.calls(), 2);
    world.questions(0);

    // With the gateway gone, the same is decided again, and the approval holds.
    let Guarded { gateway, running, agent, .. } = world.guarded;
    running.stop();
    let replay = ["gateway", "replay", "--config", "gateway.toml", &agent.session, "--json"];
    let replayed = gateway.tabellion(&replay).must_succeed().json();
    let decisions = replayed["decisions"].as_array().unwrap();
    let evidence = decisions.iter().find(|decision| decision["approval"]["answer"].is_string()).unwrap();
    fs::write(gateway.path("replayed.json"), evidence["approval"].to_string()).unwrap();
    for file in ["kept.json", "replayed.json"] {
        let verify = ["gateway", "approval", "verify", file, "--key", "carol.pub.json"];
        gateway.tabellion(&verify).must_succeed();
        let other = ["gateway", "approval", "verify", file, "--key", "mallory.pub.json"];
        assert_eq!(gateway.tabellion(&other).code, Some(3));
    }
    let dearer = evidence["approval"].to_string().replace("5000", "6000");
    fs::write(gateway.path("dearer.json"), dearer).unwrap();
    let verify = ["gateway", "approval", "verify", "dearer.json", "--key", "carol.pub.json"];
    assert_eq!(gateway.tabellion(&verify).code, Some(3));
}

#[test]
fn in_the_older_era_a_call_waits_on_its_stream_for_the_approver() {
    let world = World::new();
    for (before, deny, expected, reason) in [(0, false, "served", ""), (1, true, "denied", "approval_denied")]
    {
        let agent = world.agent().also_in(&format!("older-{expected}-session"));
        let mut client = world.guarded.running.in_session();
        agent.commit(&mut client);
        let mut coming = begin(&agent, &mut client, &large());
        let id = world.question();
        assert_eq!(world.calls(), before, "nothing is sent before there is an answer");
        let answer: &[&str] = if deny { &["answer", &id, "--deny"] } else { &["answer", &id] };
        world.approval(&CAROL, answer).must_succeed();
        let response = coming.message().unwrap();
        let verdict = Verdict::of(&response);
        assert_eq!((verdict.word(), verdict.reason()), (expected, reason), "{response}");
        assert_eq!(world.calls(), 1);
    }
    let Guarded { gateway, running, .. } = world.guarded;
    running.stop();
    for verdict in ["served", "denied"] {
        let session = format!("older-{verdict}-session");
        let replay = ["gateway", "replay", "--config", "gateway.toml", &session, "--json"];
        gateway.tabellion(&replay).must_succeed();
    }
}

#[test]
fn s12_only_an_approver_turns_a_question_into_a_permit() {
    let world = World::new();
    let (agent, mut client) = (world.agent(), world.guarded.running.modern());
    let capabilities = json!({ "elicitation": { "form": {} } });
    client = client.that_can(capabilities.clone());
    agent.commit(&mut client);
    let asked = pay(agent, &mut client, &large(), &json!({}));
    let mut retry = retry_state(&asked);
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    retry["inputResponses"] = json!({ "dev.tabellion/confirm": yes, "confirm": yes });
    let still = pay(agent, &mut client, &large(), &retry);
    assert_eq!(still.result()["resultType"], "input_required", "it still waits: {still:?}");
    let no_state = json!({ "inputResponses": retry["inputResponses"] });
    let asked_anew = pay(agent, &mut client, &large(), &no_state);
    assert_eq!(asked_anew.result()["resultType"], "input_required", "{asked_anew:?}");

    // In the older era there is nothing that it could answer.
    let older = agent.also_in("a-session-of-the-older-era");
    let mut legacy = McpClient::legacy(world.guarded.running.url()).that_can(capabilities);
    legacy.initialize(json!({})).must_succeed();
    older.commit(&mut legacy);
    let mut coming = begin(&older, &mut legacy, &large());
    let questions = world.questions(3);

    // The approvers' listener takes no key and no token of a client's, and is not where clients come.
    let mut approvals = Connection::to(&world.listen.to_string());
    for headers in [vec![], vec![("Authorization", "Bearer the-clients-own-token")]] {
        assert_eq!(approvals.send("GET", "/approvals", &headers, b"").status, 401);
    }
    assert_eq!(world.guarded.running.connection().get("/approvals").status, 404);
    assert_eq!(world.guarded.running.admin().get("/approvals").status, 404);
    for question in &questions {
        let id = question["id"].as_str().unwrap();
        let signed = by_agent(agent, question);
        let refused = approvals.send("POST", &format!("/approvals/{id}"), &[], signed.as_bytes());
        assert_eq!((refused.status, refused.json()["code"].clone()), (403, json!("approval-refused")));
        let refused = world.approval(&MALLORY, &["answer", id]);
        assert_eq!(refused.code, Some(6), "{refused}");
    }
    assert_eq!(world.calls(), 0);
    for question in &questions {
        world.approval(&CAROL, &["answer", question["id"].as_str().unwrap(), "--deny"]).must_succeed();
    }
    pay(agent, &mut client, &large(), &retry).must_be_denied("approval_denied");
    must_have_denied(&coming.message().unwrap(), "approval_denied");
    assert_eq!(world.calls(), 0);
}

/// An approval in Carol's name, signed with the agent's key.
fn by_agent(agent: &Agent, question: &Value) -> String {
    let digest = black_box::vap::digest(&question["subject"]);
    let approval = json!({
        "approver": "carol", "decision": "approve", "digest": digest, "expires": question["expires"],
        "question": question["id"],
    });
    let header = json!({ "alg": "EdDSA", "kid": agent.kid(), "typ": "vap-approval" });
    let signed = agent.signed_under(approval.clone(), &header);
    let payload = data_encoding::BASE64URL_NOPAD.encode(&black_box::vap::canonical(&approval));
    signed["signature"].as_str().unwrap().replacen("..", &format!(".{payload}."), 1)
}

#[test]
fn an_approval_admits_only_the_call_that_it_is_about() {
    let other = Agent::named("did:example:b", "another-session-of-another", 8);
    let listen = free_address();
    let guarded = Guarded::built(McpServer::ordinary(), |gateway| {
        CAROL.write_keys(&gateway);
        gateway
            .knowing(&other)
            .table(&format!("[approvals]\nlisten = \"{listen}\"\n{}", CAROL.table("")))
            .route(RULES)
    });
    let world = World { guarded, listen };
    let (agent, mut client) = (world.agent(), world.guarded.running.modern());
    let elsewhere = agent.also_in("the-same-agent-in-another-session");
    [agent, &elsewhere, &other].into_iter().for_each(|agent| drop(agent.commit(&mut client)));
    let asked = pay(agent, &mut client, &large(), &json!({}));
    let retry = retry_state(&asked);
    let id = world.question();
    let wrong = world.approval(&CAROL, &["answer", &id, "--digest", "sha256:00"]);
    assert_eq!(wrong.code, Some(6), "{wrong}");
    world.approval(&CAROL, &["answer", &id]).must_succeed();
    // It is answered once.
    let second = world.approval(&CAROL, &["answer", &id, "--deny"]);
    assert_eq!(second.code, Some(6), "{second}");
    assert!(second.stderr.contains("question-answered"), "{second}");

    let dearer = json!({ "amount": 5_000_000, "to": "somebody" });
    for (agent, arguments) in [(agent, &dearer), (&elsewhere, &large()), (&other, &large())] {
        let response = pay(agent, &mut client, arguments, &retry);
        assert_eq!(response.verdict().word(), "denied", "{arguments}: {response:?}");
    }
    assert_eq!(world.calls(), 0);
    // None of those has used it up.
    pay(agent, &mut client, &large(), &retry).must_be_served();
    assert_eq!(world.calls(), 1);
}

#[test]
fn an_unanswered_question_is_denied_when_its_time_is_over() {
    let world = World::with("", "expires = \"1s\"", "");
    let agent = world.agent().also_in("unanswered-in-the-older-era");
    let mut client = world.guarded.running.in_session();
    agent.commit(&mut client);
    let mut coming = begin(&agent, &mut client, &large());
    must_have_denied(&coming.message().unwrap(), "unanswered");
    let newer = world.agent().clone();
    let mut client = world.guarded.running.modern();
    newer.commit(&mut client);
    let asked = pay(&newer, &mut client, &large(), &json!({}));
    let response = pay(&newer, &mut client, &large(), &retry_state(&asked));
    response.must_be_denied("unanswered");
    assert_eq!(world.calls(), 0);
    let Guarded { gateway, running, .. } = world.guarded;
    running.stop();
    for session in [&agent.session, &newer.session] {
        let replay = ["gateway", "replay", "--config", "gateway.toml", session, "--json"];
        gateway.tabellion(&replay).must_succeed();
    }
}

#[test]
fn an_approval_is_invalid_once_its_key_is_replaced() {
    let world = World::new();
    let (agent, mut client) = (world.agent(), world.guarded.running.modern());
    agent.commit(&mut client);
    let asked = pay(agent, &mut client, &large(), &json!({}));
    let retry = retry_state(&asked);
    let id = world.question();
    world.approval(&CAROL, &["answer", &id]).must_succeed();
    // Another key takes the place of Carol's before the call comes again.
    let gateway = &world.guarded.gateway;
    fs::copy(gateway.path("mallory.pub.json"), gateway.path("carol.pub.json")).unwrap();
    world.guarded.running.signal(rustix::process::Signal::HUP);
    until(PATIENCE, || world.guarded.running.said(), || world.approval(&CAROL, &["list"]).code != Some(0));
    pay(agent, &mut client, &large(), &retry).must_be_denied("invalid_approval");
    assert_eq!(world.calls(), 0);
}

#[test]
fn a_question_outlives_the_gateway_that_asked_it() {
    let world = World::new();
    let (agent, mut client) = (world.agent(), world.guarded.running.modern());
    agent.commit(&mut client);
    let asked = pay(agent, &mut client, &large(), &json!({}));
    let retry = retry_state(&asked);
    let id = world.question();
    let World { guarded: Guarded { upstream, agent, gateway, running }, listen } = world;
    running.kill();
    let running = gateway.start();
    let world = World { guarded: Guarded { upstream, agent, gateway, running }, listen };
    assert_eq!(world.question(), id);
    world.approval(&CAROL, &["answer", &id]).must_succeed();
    let mut client = world.guarded.running.modern();
    pay(world.agent(), &mut client, &large(), &retry).must_be_served();
    assert_eq!(world.calls(), 1);
}

#[test]
fn a_question_whose_client_went_away_is_withdrawn() {
    let world = World::new();
    let agent = world.agent();
    let mut client = world.guarded.running.in_session();
    agent.commit_to(&mut client, json!({ "budget": { "max_calls": 1 } }));
    let coming = begin(agent, &mut client, &large());
    let id = world.question();
    drop(coming);
    world.questions(0);
    let late = world.approval(&CAROL, &["answer", &id]);
    assert!(late.stderr.contains("question-over"), "{late}");
    assert_eq!(world.calls(), 0);
    // What was held is given back.
    agent.call(&mut client, "echo", json!({})).must_be_served();
}

#[test]
fn an_approver_sees_and_answers_what_it_is_listed_for() {
    let listen = free_address();
    let guarded = Guarded::built(McpServer::ordinary(), |gateway| {
        [CAROL, MALLORY].iter().for_each(|approver| approver.write_keys(&gateway));
        let (carol, mallory) = (
            CAROL.table("tools = [\"payments.*\"]\nroutes = [\"/mcp\"]"),
            MALLORY.table("tools = [\"files.*\"]"),
        );
        let approvals = format!("[approvals]\nlisten = \"{listen}\"\n{carol}\n{mallory}");
        gateway.table(&approvals).route(RULES)
    });
    let world = World { guarded, listen };
    let (agent, mut client) = (world.agent(), world.guarded.running.modern());
    agent.commit(&mut client);
    pay(agent, &mut client, &large(), &json!({}));
    let id = world.question();
    let seen = world.approval(&MALLORY, &["list"]).must_succeed().json();
    assert_eq!((&seen["questions"], &seen["approver"]), (&json!([]), &json!("mallory")), "{seen}");
    assert_eq!(world.approval(&MALLORY, &["show", &id]).code, Some(5));
    world.approval(&CAROL, &["answer", &id]).must_succeed();
}

#[test]
fn a_confirmation_comes_from_the_approver_where_the_route_says_so() {
    let world = World::with(
        "confirmations = \"approver\"\n[[route.rule]]\nname = \"files\"\ntool = \"files.*\"\nthen = \"confirm\"",
        "",
        "",
    );
    let agent = world.agent();
    let mut client = world.guarded.running.modern().that_can(json!({ "elicitation": { "form": {} } }));
    agent.commit_to(&mut client, json!({ "scope": { "tools_allow": ["*"] } }));
    let asked = agent.call(&mut client, "files.delete", json!({ "path": "a" }));
    retry_state(&asked);
    assert_eq!(world.questions(1)[0]["because"], "policy:files");
    assert_eq!(world.calls(), 0);
}

#[test]
fn a_restricted_caller_without_vap_waits_for_the_approver_too() {
    let world = World::with("without_vap = \"restricted\"\nrestricted = [\"payments.*\"]", "", "");
    let mut client = world.guarded.running.modern();
    let params = json!({ "name": "payments.send", "arguments": large() });
    let asked = client.request("tools/call", params.clone());
    let mut retry = params;
    retry["requestState"] = retry_state(&asked)["requestState"].clone();
    world.approval(&CAROL, &["answer", &world.question()]).must_succeed();
    let response = client.request("tools/call", retry.clone());
    assert_eq!(response.result()["isError"], Value::Null, "{response:?}");
    assert_eq!(world.calls(), 1);
    client.request("tools/call", retry);
    assert_eq!(world.calls(), 1, "it is used up");
    // In the older era the call waits.
    let mut client = world.guarded.running.in_session();
    let mut coming = client.begin_call("payments.send", large(), json!({}));
    world.approval(&CAROL, &["answer", &world.question()]).must_succeed();
    coming.message().unwrap();
    assert_eq!(world.calls(), 2);
}

#[test]
fn the_record_on_the_log_names_the_approver_and_the_approval() {
    let listen = free_address();
    let scene = Scene::built(McpServer::ordinary(), |gateway| {
        CAROL.write_keys(&gateway);
        let table = format!("[approvals]\nlisten = \"{listen}\"\n{}", CAROL.table(""));
        gateway.table(&table).route(&format!(
            "{RULES}\n[[route.rule]]\nname = \"files\"\ntool = \"files.*\"\nthen = \"confirm\""
        ))
    });
    let agent = Agent::new("a-session-on-the-log");
    let Scene { upstream, log, service, gateway, running } = scene;
    let world = World { guarded: Guarded { upstream, agent, gateway, running }, listen };
    let agent = world.agent();
    let mut client =
        McpClient::legacy(world.guarded.running.url()).that_can(json!({ "elicitation": { "form": {} } }));
    client.initialize(json!({})).must_succeed();
    agent.commit_to(&mut client, json!({ "scope": { "tools_allow": ["*"] } }));
    let mut coming = begin(agent, &mut client, &large());
    let id = world.question();
    world.approval(&CAROL, &["answer", &id, "--output", "kept.json"]).must_succeed();
    assert_eq!(Verdict::of(&coming.message().unwrap()).word(), "served");
    // What the client answers for its user is recorded as its own word.
    let meta = json!({ "vap": agent.intent("files.delete", &json!({})) });
    let mut coming = client.begin_call("files.delete", json!({}), meta);
    let asked = coming.message().unwrap();
    let result = json!({ "action": "accept", "content": { "confirm": true } });
    let yes = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
    assert_eq!(client.send("", None, &yes.to_string()).status, 202);
    assert_eq!(Verdict::of(&coming.message().unwrap()).word(), "served");

    let Guarded { upstream, gateway, running, .. } = world.guarded;
    let scene = Scene { upstream, log, service, gateway, running };
    let records = scene.records(5);
    let confirmed: Vec<_> =
        records.iter().filter(|record| record.payload["confirmation"].is_object()).collect();
    assert_eq!(confirmed.len(), 2, "{records:?}");
    let of = |tool: &str| confirmed.iter().find(|record| record.payload["tool"] == tool).unwrap();
    let kept: Value = serde_json::from_slice(&fs::read(scene.gateway.path("kept.json")).unwrap()).unwrap();
    let signed = kept["answer"].as_str().unwrap();
    let by_approver = &of("payments.send").payload["confirmation"];
    assert_eq!(
        *by_approver,
        json!({
            "by": "approver", "answer": "confirmed", "approver": "carol", "question": id,
            "kid": testkit::ed25519([CAROL.seed; 32]).public_key().jwk_thumbprint(),
            "approval": format!("sha256:{}", merkle::EntryDigest::of(signed.as_bytes())),
        })
    );
    assert_eq!(of("files.delete").payload["confirmation"], json!({ "by": "client", "answer": "confirmed" }));
    // The record on the log and the approval belong together, with nobody asked.
    let entry = &of("payments.send").entry;
    let statement = scene.service.connection().get_as_auditor(&format!("/v1/entries/{entry}/statement"));
    fs::write(scene.gateway.path("decision.cose"), &statement.body).unwrap();
    let verify = |statement: &str| {
        let verify = [
            "gateway",
            "approval",
            "verify",
            "kept.json",
            "--key",
            "carol.pub.json",
            "--statement",
            statement,
        ];
        scene.gateway.tabellion(&verify)
    };
    verify("decision.cose").must_succeed();
    let entry = &of("files.delete").entry;
    let statement = scene.service.connection().get_as_auditor(&format!("/v1/entries/{entry}/statement"));
    fs::write(scene.gateway.path("other.cose"), &statement.body).unwrap();
    assert_eq!(verify("other.cose").code, Some(3));
}

#[test]
fn a_configuration_needs_an_approver_for_each_rule_that_asks_one() {
    let check = |tables: &str, route: &str| {
        let gateway = Gateway::before("http://127.0.0.1:9/mcp").table(tables).route(route);
        CAROL.write_keys(&gateway);
        gateway.tabellion(&["gateway", "check", "--config", "gateway.toml", "--offline"])
    };
    let listen = "[approvals]\nlisten = \"127.0.0.1:0\"\n";
    for (tables, why) in [
        (String::new(), "[[approver]]"),
        (CAROL.table(""), "[approvals]"),
        (format!("{listen}{}", CAROL.table("tools = [\"files.*\"]")), "rule large"),
        (format!("{listen}{}", CAROL.table("routes = [\"/other\"]")), "rule large"),
    ] {
        let ran = check(&tables, RULES);
        assert_ne!(ran.code, Some(0), "{tables}: {ran}");
        assert!(ran.stderr.contains(why), "{tables}: {ran}");
    }
    let whole = format!("{listen}{}", CAROL.table("tools = [\"pay*send\"]"));
    let ran = check(&whole, RULES);
    assert!(ran.code == Some(0) && !ran.stdout.contains("asserted by the client"), "{ran}");
    let ran = check("", &RULES.replace("approve", "confirm"));
    assert!(ran.code == Some(0) && ran.stdout.contains("asserted by the client"), "{ran}");
}

#[test]
fn a_commitment_that_needs_approval_counts_once_it_is_approved_and_sent_again() {
    let world = World::with("commitments_need_approval = true", "", "");
    world.guarded.in_both_eras(|agent, client| {
        let before = world.calls();
        let response = agent.commit(client);
        let verdict = response.verdict();
        assert_eq!((verdict.word(), verdict.reason()), ("clarify", "approval_required"), "{response:?}");
        agent.call(client, "echo", json!({})).must_be_denied("no_commitment");
        let waiting = world.questions(1);
        let subject = &waiting[0]["subject"];
        assert_eq!((&subject["kind"], &subject["session_id"]), (&json!("commitment"), &json!(agent.session)));
        assert!(subject["content"].as_str().unwrap().contains("\"goal\""), "{subject}");
        // Sent again, it is the same question; another commitment is another one.
        assert_eq!(agent.commit(client).verdict().word(), "clarify");
        let wider = agent.commit_to(client, json!({ "budget": { "max_calls": 999 } }));
        assert_eq!(wider.verdict().word(), "clarify", "{wider:?}");
        let ids: Vec<Value> = world.questions(2).iter().map(|question| question["id"].clone()).collect();
        let id = waiting[0]["id"].as_str().unwrap();
        let other = ids.iter().find(|other| **other != waiting[0]["id"]).unwrap().as_str().unwrap();
        world.approval(&CAROL, &["answer", id]).must_succeed();
        world.approval(&CAROL, &["answer", other, "--deny"]).must_succeed();
        let wider = agent.commit_to(client, json!({ "budget": { "max_calls": 999 } }));
        assert_eq!(wider.verdict().reason(), "approval_denied", "{wider:?}");
        assert_eq!(agent.commit(client).verdict().word(), "served");
        agent.call(client, "echo", json!({})).must_be_served();
        assert_eq!(agent.commit(client).verdict().reason(), "session_in_use");
        assert_eq!(world.calls(), before + 1);
    });
    let sessions = ["older", "newer"].map(|era| format!("{}-{era}", world.agent().session));
    let Guarded { gateway, running, .. } = world.guarded;
    running.stop();
    for session in sessions {
        let replay = ["gateway", "replay", "--config", "gateway.toml", &session, "--json"];
        gateway.tabellion(&replay).must_succeed();
    }
}

#[test]
fn an_amendment_that_needs_approval_becomes_a_question_to_an_approver() {
    let signer = Agent::named("did:example:carol", "", 12);
    let listen = free_address();
    let guarded = Guarded::built(McpServer::ordinary(), |gateway| {
        CAROL.write_keys(&gateway);
        fs::write(gateway.path("signer.jwk"), signer.jwk().to_string()).unwrap();
        let second = "[[approver]]\nname = \"carol\"\njwk = \"signer.jwk\"";
        gateway
            .table(&format!("[approvals]\nlisten = \"{listen}\"\n{}\n{second}", CAROL.table("")))
            .route(&format!("amendments_need_approval = true\namendments_signed = false\n{RULES}"))
    });
    let world = World { guarded, listen };
    let agent = world.agent();
    let mut client = world.guarded.running.in_session();
    let digest = agent.commit(&mut client).verdict().digest().to_owned();
    let amendment =
        |tools: &str| agent.amendment(&digest, json!({ "add_scope": { "tools_allow": [tools] } }));
    let response = client.carry(amendment("files.*"));
    assert_eq!(response.verdict().reason(), "approval_required", "{response:?}");
    agent.call(&mut client, "files.delete", json!({})).must_be_denied("scope_escape");
    let waiting = world.questions(1);
    assert_eq!(waiting[0]["subject"]["kind"], "amendment");
    assert_eq!(waiting[0]["subject"]["commitment"], digest);
    world.approval(&CAROL, &["answer", waiting[0]["id"].as_str().unwrap()]).must_succeed();
    // The approval fits no other amendment.
    assert_eq!(client.carry(amendment("*")).verdict().reason(), "approval_required");
    let response = client.carry(amendment("files.*"));
    assert_eq!(response.verdict().word(), "served", "{response:?}");
    agent.call(&mut client, "files.delete", json!({})).must_be_served();
    // One that an approver has signed itself waits for nobody.
    let next = response.verdict().digest().to_owned();
    let signed = signer.signed(agent.amendment(&next, json!({ "add_scope": { "tools_allow": ["time.*"] } })));
    assert_eq!(client.carry(signed).verdict().word(), "served");
    let Guarded { gateway, running, agent, .. } = world.guarded;
    running.stop();
    let replay = ["gateway", "replay", "--config", "gateway.toml", &agent.session, "--json"];
    gateway.tabellion(&replay).must_succeed();
}

#[test]
fn an_approved_call_is_decided_under_the_rules_then_in_force() {
    let world = World::new();
    let agent = world.agent();
    let mut older = world.guarded.running.in_session();
    agent.commit(&mut older);
    let mut coming = begin(agent, &mut older, &large());
    let id = world.question();
    let newer = agent.also_in("a-session-of-the-newer-era");
    let mut client = world.guarded.running.modern();
    newer.commit(&mut client);
    // The operator closes payments while the question is open.
    let file = world.guarded.gateway.path("gateway.toml");
    let text = fs::read_to_string(&file).unwrap();
    let closed =
        "[[route.rule]]\nname = \"closed\"\ntool = \"payments.*\"\nthen = \"deny\"\n\n[[route.rule]]";
    fs::write(&file, text.replacen("[[route.rule]]", closed, 1)).unwrap();
    world.guarded.running.signal(rustix::process::Signal::HUP);
    let begun = Instant::now();
    let small = json!({ "amount": 1, "to": "somebody" });
    while newer.call(&mut client, "payments.send", small.clone()).verdict().reason() != "policy:closed" {
        assert!(begun.elapsed() < PATIENCE, "{}", world.guarded.running.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    let before = world.calls();
    world.approval(&CAROL, &["answer", &id]).must_succeed();
    let response = coming.message().unwrap();
    must_have_denied(&response, "policy:closed");
    assert_eq!(world.calls(), before);
}
