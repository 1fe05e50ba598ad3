//! `tabellion registry serve` and `publish`, and the explanation of receipts by what a log has registered.

use black_box::cli::{Dev, Folder};
use black_box::collector::{CLIENT_SPAN, CLIENT_TRACE, protobuf_field, traceparent};
use black_box::{RegistryProcess, SpanCollector};
use serde_json::{Value, json};

use crate::roa::{LEAD, ONE, VERIFY, fails, issue, organisation, run, words};

#[test]
fn a_registry_is_served_with_the_headers_of_a_cache_and_read_again_when_it_changed() {
    let folder = organisation();
    folder.write("deltas.json", "[]");
    let served = RegistryProcess::start(&folder);
    let mut connection = served.connection();
    let first = connection.get("/registry.json");
    assert_eq!((first.status, first.header("content-type")), (200, Some("application/json")));
    assert_eq!(first.header("cache-control"), Some("max-age=3600"));
    assert_eq!(first.body, folder.read("registry.json"));
    let tag = first.header("etag").unwrap().to_owned();
    let again = connection.send("GET", "/registry.json", &[("If-None-Match", &tag)], b"");
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag.as_str())));

    issue(&folder);
    let revoke = "roa revoke root.json --registry registry.json --key operator.pem --deltas deltas.json";
    run(&folder, revoke);
    let changed = connection.send("GET", "/registry.json", &[("If-None-Match", &tag)], b"");
    assert_eq!((changed.status, changed.json()["sequence"].as_u64()), (200, Some(6)));
    let deltas = connection.get("/deltas.json");
    assert_eq!((deltas.status, deltas.header("cache-control")), (200, Some("no-cache")));
    let deltas = deltas.json();
    assert_eq!((&deltas[0]["previous_sequence"], &deltas[0]["sequence"]), (&json!(5), &json!(6)));
    served.stop();
}

#[test]
fn what_does_not_verify_is_never_served_and_the_answer_is_a_problem() {
    let folder = organisation();
    folder.write("deltas.json", "[]");
    let served = RegistryProcess::start(&folder);
    let mut connection = served.connection();
    let registry = folder.read("registry.json");
    let forged = String::from_utf8(registry.clone()).unwrap().replace("incidents", "anything!");
    for broken in [b"{}".to_vec(), forged.into_bytes()] {
        folder.write("registry.json", &broken);
        let answer = connection.get("/registry.json");
        assert_eq!((answer.status, answer.header("content-type")), (503, Some("application/problem+json")));
        assert!(answer.json()["detail"].as_str().unwrap().starts_with("the registry "), "{answer:?}");
        assert_eq!(answer.json()["code"], "registry-unusable");
    }
    folder.write("deltas.json", "{}");
    assert_eq!(connection.get("/deltas.json").status, 503);
    folder.write("registry.json", registry);
    assert_eq!(connection.get("/registry.json").status, 200);
    assert_eq!(connection.get("/keys.json").status, 404);
    let refused = connection.send("POST", "/registry.json", &[], b"");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET,HEAD")));
    let problem = refused.json();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(405), &json!("method")));
    assert_eq!(problem["type"], "https://tabellion.dev/errors/method");
}

#[test]
fn a_collector_gets_each_request_as_a_span_below_the_client_s_own() {
    let (collector, folder) = (SpanCollector::start(), organisation());
    folder.write("deltas.json", "[]");
    let served = RegistryProcess::start_with(&folder, &["--otlp", &collector.url]);
    let traceparent = traceparent();
    let answer = served.connection().send("GET", "/registry.json", &[("traceparent", &traceparent)], b"");
    assert_eq!(answer.status, 200);
    let id = answer.must_have("x-request-id").to_owned();
    served.stop();
    collector.must_have(&["tabellion-registry", "GET /registry.json", "http.response.status_code", &id]);
    assert_eq!(collector.count(protobuf_field(0x0a, &CLIENT_TRACE)), 1, "{}", collector.text());
    assert_eq!(collector.count(protobuf_field(0x22, &CLIENT_SPAN)), 1, "{}", collector.text());
    collector.must_not_have(&["acme", "error.type"]);
}

#[test]
fn metrics_count_the_answers_and_say_whether_a_file_verifies_as_readiness_does() {
    let folder = organisation();
    folder.write("deltas.json", "[]");
    let served = RegistryProcess::start(&folder);
    let mut connection = served.connection();
    assert_eq!(connection.get("/registry.json").status, 200);
    let metrics = served.metrics();
    let expected = [
        "tabellion_registry_requests_total{document=\"registry\",status=\"200\"} 1",
        "tabellion_registry_requests_total{document=\"registry\",status=\"503\"} 0",
        "tabellion_registry_file_usable{document=\"registry\"} 1",
        "tabellion_registry_file_usable{document=\"deltas\"} 1",
        "tabellion_registry_epoch 1",
        "tabellion_registry_sequence 5",
    ];
    for line in expected {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    assert_eq!(served.admin().get("/readyz").status, 200);

    folder.write("deltas.json", "{}");
    assert_eq!(connection.get("/deltas.json").status, 503);
    let metrics = served.metrics();
    let failed = "tabellion_registry_requests_total{document=\"deltas\",status=\"503\"} 1";
    for line in [failed, "tabellion_registry_file_usable{document=\"deltas\"} 0"] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    let unready = served.admin().get("/readyz");
    let reason = String::from_utf8(unready.body.clone()).unwrap();
    assert!(unready.status == 503 && reason.starts_with("the file of deltas has another format"), "{reason}");
    assert_eq!(served.admin().get("/livez").status, 200);
}

#[test]
fn a_server_does_not_start_with_what_it_would_not_serve() {
    let folder = organisation();
    let serve = |line: &str| format!("registry serve {line} --listen 127.0.0.1:0");
    let (code, _) = fails(&folder, 3, &serve("registry.json --registry-key one.pem"));
    assert_eq!(code, "registry-signature");
    let (code, _) = fails(&folder, 1, &serve("policy.json --registry-key operator.pem"));
    assert_eq!(code, "not-a-registry");
    folder.write("deltas.json", "{}");
    let (code, _) =
        fails(&folder, 1, &serve("registry.json --registry-key operator.pem --deltas deltas.json"));
    assert_eq!(code, "not-deltas");
    let (code, _) = fails(&folder, 5, &serve("nothing.json --registry-key operator.pem"));
    assert_eq!(code, "file-not-found");
}

/// A log whose policy lists the registry `acme` of this operator.
fn log_with_registry(folder: Folder) -> Dev {
    let operator = run(&folder, "issuer show operator.pem")["did_key"].as_str().unwrap().to_owned();
    let dev = Dev::start_in(folder);
    let policy = String::from_utf8(dev.folder.read("tabellion-dev/policy.toml")).unwrap();
    let listed =
        format!("[{{ id = \"acme\", iss = \"https://dev.issuer.example\", keys = [\"{operator}\"] }}]");
    let policy = policy.replacen("registry = []", &format!("registry = {listed}"), 1).replacen(
        "revision = 0",
        "revision = 1",
        1,
    );
    dev.folder.write("policy.toml", policy);
    run(&dev.folder, "policy publish policy.toml --key tabellion-dev/operator.key");
    dev
}

const PUBLISH: &str = "registry publish registry.json --key tabellion-dev/issuer.key \
                       --iss https://dev.issuer.example --trust tabellion-dev/trust.toml";

/// Registers the current version, and returns the file of its transparent statement.
fn publish(dev: &Dev) -> String {
    run(&dev.folder, PUBLISH);
    let shown = run(&dev.folder, &format!("registry show {VERIFY}"));
    format!("registry.json.{}.{}.transparent.cose", shown["epoch"], shown["sequence"])
}

#[test]
fn a_published_version_is_registered_where_the_policy_lists_its_operator_and_its_receipt_verifies() {
    let dev = log_with_registry(organisation());
    let statement = publish(&dev);
    dev.folder.run(&["verify", &statement]).must_end_with(0);
    let entry = run(&dev.folder, "entry get registry.json.1.5.cose");
    assert_eq!(entry["content_type"], "application/agentroa-registry+json");
    assert_eq!(publish(&dev), statement, "publishing again changes nothing");
    run(&dev.folder, "registry add classification registry.json --key operator.pem secret");
    let next = publish(&dev);
    assert!(next != statement && dev.folder.has(&statement), "each version has a statement of its own");
}

/// Registers the receipt of a gateway for a call under a chain, and returns the file of its transparent statement.
fn register_receipt(dev: &Dev, chain: &str, edit: impl FnOnce(&mut Value)) -> String {
    let folder = &dev.folder;
    let table = run(folder, &format!("roa inspect {chain}"));
    let objects: Value = serde_json::from_slice(&folder.read(chain)).unwrap();
    let (root, hops) = (&objects[0], objects.as_array().unwrap().len() - 1);
    let holder = table["hops"].as_array().unwrap().last().unwrap()["agent"].clone();
    let mut receipt = testkit::aer_json(u64::try_from(hops).unwrap());
    receipt["border_gateway"]["gateway_id"] = run(folder, "issuer show gateway.pem")["did_key"].clone();
    receipt["produced_at"] = objects[hops]["issued_at"].clone();
    receipt["session"] = json!({ "session_id": "s1", "agent_id": holder });
    receipt["policy"] =
        json!({ "policy_id": root["policy"]["policy_id"], "policy_digest": root["policy"]["policy_digest"] });
    receipt["chain_summary"] = json!({
        "chain_depth": hops, "root_envelope_id": root["envelope_id"], "chain_digest": table["chain_digest"],
    });
    receipt["action"]["capability"] = "mcp:github.read".into();
    receipt["action"]["mcp_tool_name"] = "read".into();
    edit(&mut receipt);
    let file = format!("{chain}.aer");
    folder.write(&file, receipt.to_string());
    run(folder, &format!("execution sign --key gateway.pem {file}"));
    run(folder, &format!("register --dev {file}.cose"));
    format!("{file}.cose.transparent.cose")
}

/// The agents after the second one.
const OTHERS: [&str; 2] = ["aha:acme/ops/two", "aha:acme/ops/three"];

/// An organisation whose registry and policy are on a log, with two delegations after the root in `chain.json` and a third,
/// wider one in `wide.json`.
fn registered_organisation() -> (Dev, String, String) {
    let (dev, policy) = organisation_with_chains(|dev| drop(publish(dev)));
    let registry = publish(&dev);
    (dev, registry, policy)
}

/// The same, where `publish_registry` comes before the chains are issued.
fn organisation_with_chains(publish_registry: impl FnOnce(&Dev)) -> (Dev, String) {
    let folder = organisation();
    for (key, agent) in [("two", OTHERS[0]), ("three", OTHERS[1])] {
        run(&folder, &format!("issuer new -o {key}.pem --alg EdDSA"));
        let line = format!("--role agent --agent {agent} --public-key {key}.pem --key operator.pem");
        run(&folder, &format!("registry add key registry.json {line}"));
    }
    run(&folder, "issuer new -o gateway.pem --alg EdDSA");
    folder.write("policy.json", "{\"rules\":[]}");
    let dev = log_with_registry(folder);
    publish_registry(&dev);
    run(&dev.folder, "register --dev policy.json --content-type application/agentroa-policy+json");
    let who = format!("--key authorizer.pem --signer acme:1 --agent {LEAD} --session s1");
    let what = "--policy policy.json --policy-id incidents:1 --allow mcp:github.* --depth 3";
    run(&dev.folder, &format!("roa issue {who} {what} -o root.json"));
    let hops = [
        ("root.json", "lead", ONE, "mcp:github.*", "one.json"),
        ("one.json", "one", OTHERS[0], "mcp:github.read", "chain.json"),
        ("chain.json", "two", OTHERS[1], "mcp:github.write", "wide.json"),
    ];
    for (from, key, to, scope, chain) in hops {
        run(
            &dev.folder,
            &format!("roa delegate {from} --key {key}.pem --to {to} --allow {scope} -o {chain}"),
        );
    }
    (dev, "policy.json.transparent.cose".to_owned())
}

#[test]
fn a_permit_and_a_denial_at_the_third_hop_are_explained_by_statements_of_a_log() {
    let (dev, registry, policy) = registered_organisation();
    let permit = register_receipt(&dev, "chain.json", |_| ());
    let denial = register_receipt(&dev, "wide.json", |receipt| {
        receipt["enforcement_outcome"] = "deny".into();
        receipt["denial_reason"] = "scope_expansion_violation".into();
        receipt["denial_detail"] = json!({ "code": "capabilities", "hop": 3, "dimension": "capabilities" });
    });
    let why = |aer: &str, chain: &str, registry: &str| {
        format!(
            "execution verify {aer} --why {chain} --registry {registry} --registry-key operator.pem \
             --policy {policy} --trust tabellion-dev/trust.toml"
        )
    };
    let permitted = run(&dev.folder, &why(&permit, "chain.json", &registry));
    assert_eq!((&permitted["decided"], &permitted["contradictions"]), (&json!("permit"), &json!([])));
    assert_eq!(
        (&permitted["hops"][2]["holder"], &permitted["registered"]),
        (&json!(OTHERS[0]), &json!(true))
    );
    let order = &permitted["registry_registered"];
    assert_eq!(order["before_decision"], true);
    assert!(order["index"].is_u64() && order["at"].is_string(), "{order}");
    let denied = run(&dev.folder, &why(&denial, "wide.json", &registry));
    assert_eq!((&denied["reason"], &denied["hop"]), (&json!("scope_expansion_violation"), &json!(3)));
    assert_eq!((&denied["dimension"], &denied["contradictions"]), (&json!("capabilities"), &json!([])));
    assert_eq!(denied["hops"].as_array().unwrap().len(), 3, "the hops before the one at fault are in order");

    let (code, _) = fails(&dev.folder, 4, &why(&permit, "chain.json", "registry.json"));
    assert_eq!(code, "no-statement", "a file says nothing about the log");
    let (code, _) = fails(&dev.folder, 4, &why("chain.json.aer.cose", "chain.json", &registry));
    assert_eq!(code, "no-receipt");
    dev.folder.run(&words("receipt get chain.json.aer.cose -o aer.receipt")).must_end_with(0);
    let with_receipt = why("chain.json.aer.cose --receipt aer.receipt", "chain.json", &registry);
    assert_eq!(run(&dev.folder, &with_receipt)["registered"], true);
}

#[test]
fn a_registry_that_was_registered_only_after_the_receipt_explains_nothing() {
    let (dev, policy) = organisation_with_chains(|_| ());
    let permit = register_receipt(&dev, "chain.json", |_| ());
    let registry = publish(&dev);
    let why = format!(
        "execution verify {permit} --why chain.json --registry {registry} --registry-key operator.pem \
         --policy {policy} --trust tabellion-dev/trust.toml"
    );
    let (code, facts) = fails(&dev.folder, 3, &why);
    assert_eq!(code, "registry-registered-later");
    let entry =
        |fact: &str| facts[fact].as_str().unwrap().strip_prefix("entry ").unwrap().parse::<u64>().unwrap();
    assert!(entry("registry") > entry("receipt"), "{facts}");
    // Without a log, nothing is said about the order.
    let offline = run(&dev.folder, why.split(" --trust").next().unwrap());
    assert_eq!((&offline["decided"], &offline["registry_registered"]), (&json!("permit"), &Value::Null));
}
