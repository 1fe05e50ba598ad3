//! Every verdict is signed, durable before anything happens, and registered in the log, exactly once: as anybody can check.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use black_box::audit_trail::{Record, must_be_whole, of_kind, records_of};
use black_box::gateway;
use black_box::{
    AUDITOR_TOKEN, Agent, Errno, Fault, Gateway, McpAnswer, McpClient, Scene, Service, StorageFaults, until,
};
use serde_json::{Value, json};
use testkit::McpServer;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// A disk that is soon full.
const DISK_MIB: u32 = 4;
/// More calls than any room left on it holds.
const MOST_CALLS: usize = 5_000;

fn known(agent: &Agent) -> impl FnOnce(Gateway) -> Gateway {
    let agent = agent.clone();
    move |gateway| gateway.knowing(&agent)
}

/// What a verifier needs of an answer, and what the caller had said.
fn verifier_input(answer: &McpAnswer, said: Value) -> Value {
    json!({ "verdict": answer.verdict().0, "evidence": answer.result()["_meta"]["dev.tabellion/evidence"], "said": said })
}

#[test]
fn a_verdict_is_proven_by_independent_software() {
    let agent = Agent::new("one-that-is-verified");
    let upstream = McpServer::scripted(|seen, wire| {
        let fails = seen.rpc() == "tools/call" && seen.param("name").unwrap() == "\"payments.send\"";
        if fails {
            wire.result(seen, "{\"resultType\":\"complete\",\"content\":[],\"isError\":true}");
        }
        fails
    });
    let scene = Scene::built(upstream, known(&agent));
    let mut client = scene.running.modern();
    let mut all = Vec::new();
    let committed = agent.commit(&mut client);
    all.push(verifier_input(
        &committed,
        json!({ "goal": agent.commitment()["goal"], "effective_commitment": agent.commitment() }),
    ));
    let intent = agent.intent("echo", &json!({}))["intent"].clone();
    let words = |arguments: &Value| json!({ "rationale": intent["rationale"], "expected_effect": intent["expected_effect"], "arguments": arguments });
    for n in 0..3 {
        let arguments = json!({ "n": n, "secret": format!("the low-entropy secret {n}") });
        all.push(verifier_input(&agent.call(&mut client, "echo", arguments.clone()), words(&arguments)));
    }
    all.push(verifier_input(&agent.call(&mut client, "payments.send", json!({})), words(&json!({}))));
    all.push(verifier_input(
        &agent.call(&mut client, "files.delete", json!({ "path": "/" })),
        words(&json!({ "path": "/" })),
    ));
    let digest = committed.verdict().digest().to_owned();
    let amended = agent.amend(&mut client, &digest, json!({ "increase_budget": { "add_calls": 1 } }));
    all.push(verifier_input(&amended, json!({})));
    // Commitment, amendment, a denial, and four calls with their outcomes.
    let records = scene.records(11);
    let count = |kind: &str| of_kind(&records, kind).len();
    assert_eq!((count("commitment"), count("amendment"), count("decision"), count("outcome")), (1, 1, 5, 4));
    must_be_whole(&records);
    let statuses: BTreeSet<&str> = of_kind(&records, "outcome")
        .iter()
        .map(|record| record.payload["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, BTreeSet::from(["errored", "executed"]));
    let base = scene.running.url().trim_end_matches("/mcp");
    let arguments =
        [base, scene.service.url().trim_end_matches('/'), &gateway::evidence_key(), AUDITOR_TOKEN];
    let verified = black_box::run_python_on("gateway_evidence.py", &arguments, &json!(all));
    assert_eq!(verified["verified"], 7);
    // The key set is on the log as well.
    let answer = scene.service.connection().get("/v1/entries?content_type=application/jwk-set%2Bjson");
    assert_eq!(answer.json()["entries"].as_array().unwrap().len(), 1, "{answer:?}");
    scene.running.stop();
    scene.service.stop();
    scene.log.must_be_sound();
}

#[test]
fn a_denial_is_in_band_and_its_record_is_on_the_log() {
    let scene = Scene::new(McpServer::ordinary(), "");
    for mut client in [scene.running.in_session(), scene.running.modern()] {
        let answer = client.call("echo", json!({ "a": 1 }), json!({}));
        let verdict = answer.must_be_denied("no_envelope");
        assert_eq!(verdict.0["in_response_to"], "intent_call");
        assert!(answer.result()["resultType"] == "complete" || client.session().is_some(), "{answer:?}");
        let url = scene.service.url().trim_end_matches('/');
        assert_eq!(verdict.audit_ref(), format!("{url}/entries/{}", verdict.entry()));
    }
    assert_eq!(scene.upstream.calls(), 0);
    let records = scene.records(2);
    let streams: BTreeSet<&str> =
        records.iter().map(|record| record.payload["stream"].as_str().unwrap()).collect();
    assert!(streams.len() == 1 && streams.first().unwrap().starts_with("unbound:"), "{streams:?}");
    must_be_whole(&records);
}

#[test]
fn a_call_without_vap_is_recorded_and_its_answer_unchanged() {
    let scene = Scene::new(McpServer::ordinary(), "without_vap = \"advisory\"");
    let answer = scene.running.modern().call("echo", json!({ "a": 1 }), json!({}));
    assert!(answer.must_succeed().result()["_meta"].is_null(), "{answer:?}");
    let records = scene.records(2);
    assert_eq!(
        (of_kind(&records, "decision").len(), of_kind(&records, "outcome").len()),
        (1, 1),
        "{records:?}"
    );
    assert!(
        !json!(records.iter().map(|record| &record.payload).collect::<Vec<_>>())
            .to_string()
            .contains("\"a\"")
    );
}

#[test]
fn records_of_clients_without_vap_have_a_stream_per_session_and_name_the_client() {
    let scene = Scene::new(McpServer::ordinary(), "without_vap = \"advisory\"");
    let (mut one, mut other) = (scene.running.in_session(), scene.running.in_session());
    for client in [&mut one, &mut other, &mut scene.running.modern()] {
        client.call("echo", json!({}), json!({})).must_succeed();
    }
    one.call("echo", json!({}), json!({})).must_succeed();
    assert_eq!(one.delete().status, 200);
    // Four decisions, four outcomes, and the end of the session that was ended.
    let records = scene.records(9);
    let decisions = of_kind(&records, "decision");
    assert!(decisions.iter().all(|record| record.payload["asserted_client"] == "black-box"), "{records:?}");
    let mut streams: Vec<&str> =
        decisions.iter().map(|record| record.payload["stream"].as_str().unwrap()).collect();
    streams.sort_unstable();
    let own = streams[0].to_owned();
    assert!(streams.iter().all(|stream| stream.starts_with(&own)), "{streams:?}");
    streams.dedup();
    assert_eq!(streams.len(), 3, "{streams:?}");
    scene.running.stop();
    // Every stream has its end, though the log may get it from the next run.
    let running = scene.gateway.start();
    running.wait_for_metric("gateway_evidence_pending_records", |left| left == 0.0);
    let records = records_of(&scene.service);
    assert_eq!(of_kind(&records, "closed").len(), 3, "{records:?}");
    must_be_whole(&records);
}

#[test]
fn a_decision_is_durable_before_the_call_reaches_the_server() {
    let agent = Agent::new("one-that-is-cut-off");
    // The server never answers: the gateway is killed while it waits.
    let upstream = McpServer::scripted(|seen, wire| {
        let asked = seen.rpc() == "tools/call";
        if asked {
            wire.is_hung_up_on();
        }
        asked
    });
    let scene = Scene::built(upstream, known(&agent));
    let Scene { upstream, service, gateway, running, .. } = &scene;
    agent.commit_to(&mut running.modern(), json!({ "budget": { "max_calls": 1 } }));
    let url = running.url().to_owned();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let intent = agent.signed(agent.intent("echo", &json!({})));
            let mut client = McpClient::modern(&url);
            let mut params = json!({ "name": "echo", "arguments": {}, "_meta": { "vap": intent } });
            client.dress(&mut params);
            let body = client.body("tools/call", &params);
            let _ = client.try_send("tools/call", Some("echo"), &body);
        });
        upstream.wait_for("tools/call", 1);
        running.signal(rustix::process::Signal::KILL);
    });
    let again = gateway.start();
    let begun = Instant::now();
    let outcome = loop {
        let records = records_of(service);
        if let Some(outcome) = of_kind(&records, "outcome").first() {
            must_be_whole(&records);
            break outcome.payload.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{records:?} {}", again.said());
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(outcome["status"], "unknown", "nobody knows what became of it");
    // What may have run is paid for.
    agent.call(&mut again.modern(), "echo", json!({})).must_be_denied("budget_exceeded");
    assert_eq!(upstream.calls(), 1, "and is not sent again");
}

#[test]
fn a_call_is_served_only_with_a_receipt_where_one_is_required() {
    let agent = Agent::new("one-with-receipts");
    let (log, upstream) = (gateway::admitting_log(), McpServer::ordinary());
    let key = log.tabellion(&["key", "show", "--json"]).must_succeed().json();
    let service = log.serve();
    let gateway = Gateway::before(&upstream.url()).knowing(&agent).logging_to(service.url());
    let gateway = gateway.log("receipt_required = true\nreceipt_wait = \"5s\"");
    let unbelieving = gateway.tabellion(&["gateway", "check", "--config", "gateway.toml"]);
    assert!(unbelieving.to_string().contains("log.trust"), "{unbelieving}");
    let gateway = gateway.log("trust = \"trust.toml\"");
    let trust = format!("[[log]]\niss = \"{}\"\nkeys = [{}]\n", testkit::LOG_ISS, key["receipt"]["did_key"]);
    fs::write(gateway.path("trust.toml"), trust).unwrap();
    let running = gateway.start();
    let mut client = running.modern();
    agent.commit(&mut client);
    let answer = agent.call(&mut client, "echo", json!({}));
    let entry = answer.must_be_served().entry().to_owned();
    assert!(answer.result()["_meta"]["dev.tabellion/evidence"]["receipt"].is_string(), "{answer:?}");
    assert!(records_of(&service).iter().any(|record| record.entry == entry));
    service.kill();
    agent.call(&mut client, "echo", json!({})).must_be_denied("receipt_unavailable");
    assert_eq!(upstream.calls(), 1);
}

#[test]
fn a_full_outbox_denies_and_a_drained_one_serves_again() {
    let agent = Agent::new("one-that-waits");
    let log = gateway::admitting_log();
    let address = black_box::free_address();
    log.configure(&format!("listen = \"{address}\""));
    let upstream = McpServer::ordinary();
    let gateway = Gateway::before(&upstream.url()).knowing(&agent).logging_to(&format!("http://{address}"));
    let gateway = gateway.table("[outbox]\nrecords = 6");
    let running = gateway.start();
    let mut client = running.modern();
    agent.commit(&mut client);
    let words: Vec<String> =
        (0..10).map(|_| agent.call(&mut client, "echo", json!({})).verdict().word().to_owned()).collect();
    let served = words.iter().filter(|word| *word == "served").count();
    assert!((1..5).contains(&served) && upstream.calls() == served, "{words:?}");
    agent.call(&mut client, "echo", json!({})).must_be_denied("evidence_backpressure");
    let service = log.serve();
    until(
        PATIENCE,
        || running.said(),
        || agent.call(&mut client, "echo", json!({})).verdict().word() == "served",
    );
    running.wait_for_metric("gateway_evidence_pending_records", |left| left == 0.0);
    let records = settled(&service);
    must_be_whole(&records);
    let served = records.iter().filter(|record| record.permits()).count();
    assert_eq!(served, upstream.calls());
}

#[test]
fn a_full_disk_denies_and_keeps_every_record() {
    let agent = Agent::new("one-on-a-full-disk");
    let log = gateway::admitting_log();
    let service = log.serve();
    let upstream = McpServer::ordinary();
    let gateway = Gateway::before(&upstream.url()).knowing(&agent).logging_to(service.url());
    let running = gateway.start_on_a_small_disk(DISK_MIB);
    let mut client = running.modern();
    agent.commit_to(&mut client, json!({ "budget": { "max_calls": 100_000 } }));
    agent.call(&mut client, "echo", json!({})).must_be_served();
    let ballast = running.disk(&gateway).join("ballast");
    fill(&ballast);
    // What room the database had left is used up, and then nothing is served.
    let words = (0..MOST_CALLS).map(|_| agent.call(&mut client, "echo", json!({})).verdict());
    let denied = words.into_iter().find(|verdict| verdict.word() != "served").expect("the disk is full");
    assert_eq!(denied.reason(), "evidence_backpressure", "{denied:?}");
    let served = upstream.calls();
    agent.call(&mut client, "echo", json!({})).must_be_denied("evidence_backpressure");
    assert_eq!(upstream.calls(), served, "what cannot be recorded does not happen");
    let ready = || running.admin().get("/readyz");
    assert_eq!((ready().status, &ready().json()["ready"]), (503, &json!(false)));
    fs::remove_file(&ballast).unwrap();
    // Without a call: a load balancer sends none to a gateway that is not ready.
    until(PATIENCE, || running.said(), || ready().status == 200);
    until(
        PATIENCE,
        || running.said(),
        || agent.call(&mut client, "echo", json!({})).verdict().word() == "served",
    );
    running.wait_for_metric("gateway_evidence_pending_records", |left| left == 0.0);
    let records = settled(&service);
    must_be_whole(&records);
    assert_eq!(records.iter().filter(|record| record.permits()).count(), upstream.calls());
}

#[test]
fn a_start_on_a_read_only_disk_ends_with_the_reason() {
    let (gateway, faults) = (Gateway::before("http://127.0.0.1:9/"), StorageFaults::new());
    gateway.start().stop();
    let state = gateway.path("gw").canonicalize().unwrap();
    faults.begin(&Fault::of_everything(Errno::ReadOnly, &state));
    let variables = faults.variables();
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let Err(ended) = gateway.try_start(&variables) else { panic!("it started") };
    assert!(ended.code == Some(7) && ended.stderr.contains("storage-read-only"), "{ended}");
    faults.end();
    gateway.start().stop();
}

/// Writes until there is no room.
fn fill(file: &Path) {
    let mut file = fs::File::create(file).unwrap();
    for block in [64 << 10, 4 << 10, 1] {
        while file.write_all(&vec![0; block]).is_ok() {}
    }
}

/// The records, once each call that was let through has its outcome.
#[track_caller]
fn settled(service: &Service) -> Vec<Record> {
    let begun = Instant::now();
    loop {
        let records = records_of(service);
        let permits = records.iter().filter(|record| record.permits()).count();
        if of_kind(&records, "outcome").len() >= permits {
            return records;
        }
        assert!(begun.elapsed() < PATIENCE, "{records:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_callers_invocation_reasons_stay_out_of_answers_and_records() {
    let agent = Agent::new("one-who-explains-himself");
    let scene = Scene::built(McpServer::ordinary(), known(&agent));
    let mut client = scene.running.modern();
    agent.commit(&mut client);
    let aside = json!({ "turnId": "turn-7", "invocationReason": { "text": "the user was ANGRY" },
        "userIntent": { "text": "a PRIVATE wish" }, "model": { "name": "m" } });
    for tool in ["echo", "files.delete"] {
        let intent = agent.signed(agent.intent(tool, &json!({})));
        let meta = json!({ "vap": intent, "io.modelcontextprotocol/aiInvocation": aside });
        let answer = client.call(tool, json!({}), meta);
        assert_eq!(
            answer.result()["_meta"]["io.modelcontextprotocol/aiInvocation"],
            json!({ "turnId": "turn-7" }),
            "{answer:?}"
        );
        assert!(!answer.message.to_string().contains("ANGRY"), "{answer:?}");
    }
    assert!(
        scene.upstream.only_call().text().contains("the user was ANGRY"),
        "it is addressed to the server"
    );
    // A malformed `aiInvocation` is recorded as malformed, and the call is unaffected.
    let intent = agent.signed(agent.intent("echo", &json!({})));
    let meta = json!({ "vap": intent, "io.modelcontextprotocol/aiInvocation": { "turnId": 7 } });
    let answer = client.call("echo", json!({}), meta);
    answer.must_be_served();
    assert!(answer.result()["_meta"]["io.modelcontextprotocol/aiInvocation"].is_null(), "{answer:?}");
    let records = scene.records(6);
    assert!(!format!("{records:?}").contains("PRIVATE") && !format!("{records:?}").contains("turn-7"));
}

#[test]
fn two_gateways_on_one_database_share_a_budget() {
    let agent = Agent::new("one-of-two");
    let upstream = McpServer::ordinary();
    let database = black_box::Database::postgres().url();
    let one = Gateway::before(&upstream.url()).knowing(&agent).top(&format!("evidence = \"{database}\""));
    let two = Gateway::before(&upstream.url()).knowing(&agent).top(&format!("evidence = \"{database}\""));
    let first = one.start();
    // Verdicts and states of both are under the same keys.
    fs::create_dir_all(two.path("gw")).unwrap();
    for file in fs::read_dir(one.path("gw")).unwrap().map(|file| file.unwrap()) {
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), two.path("gw").join(file.file_name())).unwrap();
        }
    }
    let second = two.start();
    agent.commit_to(&mut first.modern(), json!({ "budget": { "max_calls": 8 } }));
    let served = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..16 {
            let (running, served, agent) = (if n % 2 == 0 { &first } else { &second }, &served, &agent);
            scope.spawn(move || {
                let answer = agent.call(&mut running.modern(), "echo", json!({}));
                let word = answer.verdict().word() == "served";
                served.fetch_add(usize::from(word), std::sync::atomic::Ordering::SeqCst);
            });
        }
    });
    assert_eq!((served.into_inner(), upstream.calls()), (8, 8));
}
