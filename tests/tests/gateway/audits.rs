//! What an auditor reads of a session: each text in clear, and proven against the log.

use std::fs;

use black_box::gateway::{self, GATEWAY};
use black_box::{Agent, Ran, Scene};
use serde_json::{Value, json};
use testkit::McpServer;

/// A session of one served and one denied call, all of it on the log.
fn audited() -> (Agent, Scene) {
    let agent = Agent::new("one-that-is-audited");
    let scene = Scene::built(McpServer::ordinary(), |gateway| gateway.knowing(&agent));
    let mut client = scene.running.modern();
    agent.commit(&mut client);
    for (tool, turn) in [("echo", "turn-1"), ("files.delete", "turn-2")] {
        let intent = agent.signed(agent.intent(tool, &json!({ "n": 1 })));
        let said = json!({ "turnId": turn, "invocationReason": { "text": "the user asked" } });
        client.call(tool, json!({ "n": 1 }), json!({ "vap": intent, "dev.tabellion/aiInvocation": said }));
    }
    scene.records(4);
    let key = scene.log.tabellion(&["key", "show", "--json"]).must_succeed().json();
    let trust = format!(
        "[[log]]\niss = \"{}\"\nkeys = [{}]\n[[issuer]]\niss = \"{GATEWAY}\"\nkeys = [\"{}\"]\n",
        testkit::LOG_ISS,
        key["receipt"]["did_key"],
        gateway::evidence_did_key()
    );
    fs::write(scene.gateway.path("trust.toml"), trust).unwrap();
    (agent, scene)
}

fn audit(scene: &Scene, arguments: &[&str]) -> Ran {
    let url = scene.service.url().to_owned();
    let fixed = ["audit", "session", "--trust", "trust.toml", "--url", &url, "--json"];
    scene.gateway.tabellion(&[&fixed[..], arguments].concat())
}

/// A committed member of a record, as the auditor reads it.
struct Member<'a> {
    value: &'a Value,
    proof: &'a str,
}

fn member<'a>(record: &'a Value, name: &str) -> Member<'a> {
    let opened = &record["committed"][name];
    Member { value: &opened["value"], proof: opened["proof"].as_str().unwrap_or("absent") }
}

#[test]
fn an_audit_opens_and_proves_the_texts_of_a_session() {
    let (agent, scene) = audited();
    let trail = audit(&scene, &["--config", "gateway.toml", &agent.session]).must_succeed().json();
    let records = trail["records"].as_array().unwrap();
    let kinds: Vec<_> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["commitment", "decision", "outcome", "decision"], "{trail}");
    assert!(records.iter().all(|record| record["registered"] == true), "{trail}");
    let [commitment, served, outcome, denied] = &records[..] else { panic!("four records: {trail}") };
    assert!(member(commitment, "goal").value.is_string(), "{trail}");
    assert_eq!(served["turn_id"], "turn-1", "{trail}");
    assert_eq!(member(served, "arguments").value, &json!({ "n": 1 }), "{trail}");
    for name in ["arguments", "ai_invocation", "rationale"] {
        assert_eq!(member(served, name).proof, "proven", "{name}: {trail}");
    }
    assert_eq!(member(outcome, "result").proof, "proven", "{trail}");
    assert_eq!(outcome["decision"], served["entry_id"], "{trail}");
    assert_eq!(denied["verdict"], "denied", "{trail}");
    assert_eq!(denied["reason"], "scope_escape", "{trail}");
    let one = audit(&scene, &["--config", "gateway.toml", "--turn", "turn-1", &agent.session]);
    let one = one.must_succeed().json();
    assert_eq!(one["records"].as_array().unwrap().len(), 2, "a decision and its outcome: {one}");
}

#[test]
fn a_disclosure_is_proven_without_the_gateway_and_its_alteration_found() {
    let (agent, scene) = audited();
    let disclose =
        ["--config", "gateway.toml", "--disclose", "opened.json", "--member", "goal", &agent.session];
    audit(&scene, &disclose).must_succeed();
    let disclosed: Value =
        serde_json::from_slice(&fs::read(scene.gateway.path("opened.json")).unwrap()).unwrap();
    let trail = audit(&scene, &["--opened", "opened.json"]).must_succeed().json();
    assert_eq!(member(&trail["records"][0], "goal").proof, "proven", "{trail}");
    let withheld = member(&trail["records"][1], "arguments");
    assert_eq!((withheld.value, withheld.proof), (&Value::Null, "withheld"), "{trail}");
    let mut changed = disclosed.clone();
    changed[0]["texts"]["goal"] = "\"another goal\"".into();
    fs::write(scene.gateway.path("changed.json"), changed.to_string()).unwrap();
    let ran = audit(&scene, &["--opened", "changed.json"]);
    assert_eq!(ran.code, Some(3), "{ran}");
    let mut cut = disclosed;
    cut[0]["key"] = "AA".into();
    fs::write(scene.gateway.path("cut.json"), cut.to_string()).unwrap();
    assert_eq!(audit(&scene, &["--opened", "cut.json"]).code, Some(3));
    fs::write(scene.gateway.path("none.json"), "[]").unwrap();
    assert_eq!(audit(&scene, &["--opened", "none.json"]).code, Some(5), "nothing proves nothing");
}

#[test]
fn a_disclosure_with_an_invented_text_or_a_record_given_twice_is_refused() {
    let (agent, scene) = audited();
    let disclose = ["--config", "gateway.toml", "--disclose", "opened.json", &agent.session];
    audit(&scene, &disclose).must_succeed();
    let disclosed: Vec<Value> =
        serde_json::from_slice(&fs::read(scene.gateway.path("opened.json")).unwrap()).unwrap();
    let mut invented = disclosed.clone();
    invented[0]["texts"]["instruction"] = json!({ "beginning": "\"pay them\"", "bytes": 999_999 });
    fs::write(scene.gateway.path("invented.json"), json!(invented).to_string()).unwrap();
    let ran = audit(&scene, &["--opened", "invented.json"]);
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(ran.stdout.contains("contradicted"), "{ran}");
    let twice = [&disclosed[..], &disclosed[1..2]].concat();
    fs::write(scene.gateway.path("twice.json"), json!(twice).to_string()).unwrap();
    let ran = audit(&scene, &["--opened", "twice.json"]);
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(ran.stderr.contains("not-a-disclosure"), "{ran}");
}

#[test]
fn records_that_were_left_out_of_a_disclosure_are_named() {
    let (agent, scene) = audited();
    let disclose = ["--config", "gateway.toml", "--disclose", "opened.json", &agent.session];
    let whole = audit(&scene, &disclose).must_succeed().json();
    assert_eq!((&whole["gaps"], &whole["closed"]), (&json!([]), &json!(false)), "{whole}");
    let mut disclosed: Vec<Value> =
        serde_json::from_slice(&fs::read(scene.gateway.path("opened.json")).unwrap()).unwrap();
    disclosed.remove(2);
    fs::write(scene.gateway.path("less.json"), json!(disclosed).to_string()).unwrap();
    let less = audit(&scene, &["--opened", "less.json"]).must_succeed().json();
    assert_eq!(less["gaps"], json!([{ "from": 2, "to": 2 }]), "{less}");
}

#[test]
fn a_disclosure_with_a_record_of_another_session_is_refused_also_for_one_turn() {
    let (agent, scene) = audited();
    let other = agent.also_in("one-of-another-session");
    let mut client = scene.running.modern();
    other.commit(&mut client);
    scene.records(5);
    let disclosed = |agent: &Agent| -> Vec<Value> {
        let disclose = ["--config", "gateway.toml", "--disclose", "opened.json", &agent.session];
        audit(&scene, &disclose).must_succeed();
        let file = scene.gateway.path("opened.json");
        let disclosed = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        fs::remove_file(file).unwrap();
        disclosed
    };
    let mixed = [disclosed(&agent), disclosed(&other)].concat();
    fs::write(scene.gateway.path("mixed.json"), json!(mixed).to_string()).unwrap();
    for turn in [&[][..], &["--turn", "turn-1"]] {
        let ran = audit(&scene, &[&["--opened", "mixed.json"], turn].concat());
        assert_eq!(ran.code, Some(3), "{ran}");
        assert!(ran.stderr.contains("not-a-disclosure"), "{ran}");
    }
}

#[test]
fn a_turn_without_records_is_not_disclosed() {
    let (agent, scene) = audited();
    let disclose =
        ["--config", "gateway.toml", "--disclose", "opened.json", "--turn", "turn-9", &agent.session];
    let ran = audit(&scene, &disclose);
    assert_eq!(ran.code, Some(5), "{ran}");
    assert!(ran.stderr.contains("no-session"), "{ran}");
    assert!(!scene.gateway.path("opened.json").exists());
}

#[test]
fn an_audit_without_trust_anchors_proves_nothing() {
    let (agent, scene) = audited();
    fs::write(scene.gateway.path("trust.toml"), "").unwrap();
    let ran = audit(&scene, &["--config", "gateway.toml", &agent.session]);
    assert_eq!(ran.code, Some(4), "{ran}");
}
