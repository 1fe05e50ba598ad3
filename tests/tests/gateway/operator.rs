//! What an operator and a caller do beside a running gateway: check a Verdict with nothing but files, decide a session again, and
//! change the rules while it serves.

use std::fs;
use std::time::Duration;

use black_box::{Agent, Guarded, Ran, Scene, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::McpServer;

/// How long a running gateway may take to notice a change.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_verdict_is_verified_offline_and_an_altered_one_refused() {
    let agent = Agent::new("one-that-is-shown-around");
    let scene = Scene::built(McpServer::ordinary(), |gateway| gateway.knowing(&agent));
    let mut client = scene.running.modern();
    agent.commit(&mut client);
    let answer = agent.call(&mut client, "files.delete", json!({ "path": "/" }));
    let verdict = answer.must_be_denied("scope_escape");
    scene.records(2);
    let statement =
        scene.service.connection().get_as_auditor(&format!("/v1/entries/{}/statement", verdict.entry()));
    let jwks = scene.running.connection().get("/.well-known/jwks.json");
    let key = answer.result()["_meta"]["dev.tabellion/evidence"]["key"].as_str().unwrap().to_owned();
    let elsewhere = &scene.gateway;
    let file = |name: &str, bytes: &[u8]| fs::write(elsewhere.path(name), bytes).unwrap();
    file("statement.cose", &statement.body);
    file("jwks.json", &jwks.body);
    let verify = |verdict: &Value, key: &str| {
        file("verdict.json", verdict.to_string().as_bytes());
        let files = ["--jwks", "jwks.json", "--statement", "statement.cose", "--record-key", key];
        elsewhere
            .command(&[&["verdict", "verify", "verdict.json", "--json"], &files[..]].concat())
            .output()
            .unwrap()
    };
    let output = verify(&verdict.0, &key);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for (member, forged) in
        [("verdict", "served"), ("session_id", "another"), ("audit_ref", "http://127.0.0.1:9/entries/00")]
    {
        let mut changed = verdict.0.clone();
        changed[member] = forged.into();
        assert_ne!(verify(&changed, &key).status.code(), Some(0), "{member}");
    }
    let first = if key.starts_with('b') { "c" } else { "b" };
    let another = format!("{first}{}", &key[1..]);
    assert_ne!(verify(&verdict.0, &another).status.code(), Some(0), "another key");
}

#[test]
fn a_recorded_session_is_decided_again_to_the_same() {
    let agent = Agent::new("one-that-is-replayed");
    let scene = Scene::built(McpServer::ordinary(), |gateway| gateway.knowing(&agent));
    let mut client = scene.running.modern();
    let digest =
        agent.commit_to(&mut client, json!({ "budget": { "max_calls": 3 } })).verdict().digest().to_owned();
    for tool in ["echo", "files.delete", "payments.send", "echo", "echo"] {
        agent.call(&mut client, tool, json!({ "n": 1 }));
    }
    agent.amend(&mut client, &digest, json!({ "increase_budget": { "add_calls": 1 } }));
    agent.call(&mut client, "echo", json!({})).must_be_served();
    scene.running.stop();
    let ran =
        scene.gateway.tabellion(&["gateway", "replay", "--config", "gateway.toml", &agent.session, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran}");
}

#[test]
fn a_session_that_cannot_be_decided_again_is_not_called_the_same() {
    let guarded = Guarded::new();
    let (agent, mut client) = (&guarded.agent, guarded.running.modern());
    agent.commit(&mut client);
    agent.call(&mut client, "echo", json!({})).must_be_served();
    guarded.running.stop();
    let text = fs::read_to_string(guarded.gateway.path("gateway.toml")).unwrap();
    let renamed = text.replace("path = \"/mcp\"", "path = \"/renamed\"");
    fs::write(guarded.gateway.path("renamed.toml"), renamed).unwrap();
    let replay = |more: &[&str]| {
        let arguments = ["gateway", "replay", "--config", "renamed.toml", &agent.session];
        Ran::from(guarded.gateway.command(&[&arguments[..], more].concat()).output().unwrap())
    };
    let ran = replay(&["--json"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    let replayed = ran.json();
    assert_eq!((&replayed["differences"], &replayed["undecided"]), (&json!(0), &json!(2)), "{ran}");
    let ran = replay(&[]);
    assert!(ran.stdout.contains("0 answers would differ, 2 cannot be decided again"), "{ran}");
    assert!(!ran.stdout.contains("same"), "{ran}");
}

#[test]
fn rules_change_at_a_reload_and_stay_after_a_mistake() {
    let guarded = Guarded::new();
    let (agent, mut client) = (&guarded.agent, guarded.running.modern());
    agent.commit(&mut client);
    agent.call(&mut client, "echo", json!({})).must_be_served();
    let file = guarded.gateway.path("gateway.toml");
    let before = fs::read_to_string(&file).unwrap();
    let rule = "\n[[route.rule]]\nname = \"closed\"\ntool = \"echo\"\nwhen = \"input.tool == \\\"echo\\\"\"\nthen = \"deny\"\n";
    fs::write(&file, format!("{before}{rule}")).unwrap();
    guarded.running.signal(Signal::HUP);
    until(
        SOON,
        || guarded.running.said(),
        || agent.call(&mut client, "echo", json!({})).verdict().reason() == "policy:closed",
    );
    fs::write(&file, format!("{before}\nthis is not TOML")).unwrap();
    guarded.running.signal(Signal::HUP);
    until(SOON, || guarded.running.said(), || guarded.running.said().contains("line "));
    agent.call(&mut client, "echo", json!({})).must_be_denied("policy:closed");
    let ran = guarded
        .gateway
        .command(&["gateway", "check", "--config", "gateway.toml", "--offline", "--json"])
        .output()
        .unwrap();
    assert_ne!(ran.status.code(), Some(0));
}

#[test]
fn health_and_metrics_are_for_the_operator_alone() {
    let scene = Scene::new(McpServer::ordinary(), "");
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(scene.running.admin().get(path).status, 200, "{path}");
        assert_eq!(scene.running.connection().get(path).status, 404, "{path}");
    }
    scene.running.modern().call("echo", json!({}), json!({})).must_be_denied("no_envelope");
    let text = String::from_utf8(scene.running.admin().get("/metrics").body).unwrap();
    let counted = text.lines().find(|line| line.starts_with("gateway_decisions_total{"));
    assert!(counted.is_some_and(|line| line.contains("denied") && line.contains("no_envelope")), "{text}");
}
