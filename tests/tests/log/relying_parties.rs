//! What a relying party finds out about receipts and agents with the command line, without trusting the service's words.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use black_box::{Connection, Log, Ran, Service, on_both_databases, until};
use registration::vrf::VrfStatement;
use scitt::header::labels::EXP;
use scitt::{SignedStatement, Signer, SigningKey, StatementBuilder};
use serde_json::{Value, json};
use testkit::{AGENT, ISSUER, KID, ed25519, es256, receipt_json};

use super::vrf_chains::settled;

/// The artifact that [`receipt_json`] is about.
const ARTIFACT: &[u8] = b"abc";
/// How long an erasure may take.
const SOON: Duration = Duration::from_secs(20);

fn key(n: u8) -> SigningKey {
    ed25519([n; 32])
}

fn did(n: u8) -> String {
    key(n).public_key().did_key()
}

fn failed(n: u64) -> Value {
    let mut json = receipt_json(n);
    json["verdict"] = "fail".into();
    json["results"] = json!({ "total": 1, "passed": 0, "failed": 1, "errors": 0 });
    json["task"] = json!({ "task_type": "code_generation" });
    json
}

fn signed(n: u8, sub: &str, json: Value) -> SignedStatement {
    VrfStatement::new(json, sub).sign(&key(n)).unwrap()
}

/// A log with a pass of the verifiers 1 and 2 under one `receipt_id`, and a fail of verifier 3; `trust.toml` that trusts
/// it, and `nobody.toml`.
fn with_receipts(log: &Log) -> Service {
    let service = log.serve();
    let mut connection = service.connection();
    let statements =
        [signed(1, AGENT, receipt_json(1)), signed(2, AGENT, receipt_json(1)), signed(3, AGENT, failed(3))];
    for statement in &statements {
        must_be_registered(&mut connection, statement);
    }
    let flags = ["trust", "add", "log", "--trust", "trust.toml", "--kid", &receipt_kid(log)];
    log.tabellion(&[&flags[..], &["--url", service.url()]].concat()).must_succeed();
    fs::write(log.path("nobody.toml"), "").unwrap();
    fs::write(log.path("artifact"), ARTIFACT).unwrap();
    service
}

fn receipt_kid(log: &Log) -> String {
    log.tabellion(&["key", "show", "--json"]).json()["receipt"]["kid"].as_str().unwrap().to_owned()
}

#[track_caller]
fn must_be_registered(connection: &mut Connection, statement: &SignedStatement) {
    assert!(matches!(settled(connection, statement), 200 | 201));
}

/// Runs a command with the service's URL and the trust file.
fn ask(log: &Log, service: &Service, arguments: &[&str]) -> Ran {
    log.tabellion(&[arguments, &["--url", service.url(), "--trust", "trust.toml", "--json"]].concat())
}

fn id(n: u64) -> String {
    receipt_json(n)["receipt_id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn must_end_with(ran: Ran, code: i32) -> Value {
    assert_eq!(ran.code, Some(code), "{ran}");
    let text = if ran.stdout.is_empty() { &ran.stderr } else { &ran.stdout };
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {ran}"))
}

on_both_databases! {
    fn a_receipt_is_fetched_by_its_name_and_issuer_and_verified(log: Log) {
        let service = with_receipts(&log);
        let ambiguous = must_end_with(ask(&log, &service, &["vrf", "fetch", &id(1)]), 2);
        assert_eq!(ambiguous["error"]["code"], "receipt-ambiguous");
        for n in [1, 2] {
            assert!(ambiguous.to_string().contains(&did(n)), "{ambiguous}");
        }
        let only = must_end_with(ask(&log, &service, &["vrf", "fetch", &id(3)]), 0);
        assert_eq!((&only["verdict"], &only["issuer"]), (&json!("fail"), &json!(did(3))));
        fs::create_dir(log.path("two")).unwrap();
        let of_two = ["vrf", "fetch", &id(1), "--issuer", &did(2), "--output", "two"];
        let fetched = must_end_with(ask(&log, &service, &of_two), 0);
        assert_eq!((&fetched["verified"], &fetched["agent"]), (&json!(true), &json!(AGENT)));
        assert_eq!(fetched["entry"], json!(signed(2, AGENT, receipt_json(1)).digest().to_string()));
        for ending in ["cose", "receipt", "transparent.cose"] {
            assert!(log.path(&format!("two/{}.{ending}", id(1))).exists(), "{ending}");
        }
        // Its receipt is that of the registration, although the log has grown.
        let entry = log.tabellion(&["entry", "get", fetched["entry"].as_str().unwrap(), "--url", service.url(), "--json"]);
        let at: jiff::Timestamp = entry.must_succeed().json()["at"].as_str().unwrap().parse().unwrap();
        assert_eq!((&fetched["position"], &fetched["in_log_by"]), (&json!("leaf 2 of 3"), &json!(at.as_second())));
        must_end_with(ask(&log, &service, &["vrf", "fetch", &id(1), "--issuer", &did(3)]), 5);
        let untrusted = ["vrf", "fetch", &id(3), "--url", service.url(), "--trust", "nobody.toml", "--json"];
        let untrusted = must_end_with(log.tabellion(&untrusted), 4);
        assert_eq!(untrusted["fault"]["code"], "no-trust-anchors");
    }
}

#[test]
fn what_was_registered_before_a_rotation_is_verified_by_who_trusts_the_new_key_only() {
    let log = Log::sqlite();
    let service = with_receipts(&log);
    let rotated = log.on_admin(&service, &["key", "rotate", "receipt"]).must_succeed().json();
    must_be_registered(&mut service.connection(), &signed(4, AGENT, receipt_json(4)));
    fs::remove_file(log.path("trust.toml")).unwrap();
    let kid = rotated["kid"].as_str().unwrap();
    let flags = ["trust", "add", "log", "--trust", "trust.toml", "--kid", kid, "--url", service.url()];
    until(SOON, || "the new key is not published", || log.tabellion(&flags).code == Some(0));
    fs::write(log.path("s.cose"), signed(1, AGENT, receipt_json(1)).bytes()).unwrap();
    log.tabellion(&["receipt", "get", "s.cose", "-o", "s.receipt", "--url", service.url()]).must_succeed();
    let verify = ["receipt", "verify", "s.receipt", "--statement", "s.cose", "--trust", "trust.toml"];
    log.tabellion(&verify).must_succeed();
    must_end_with(ask(&log, &service, &["agent", "view", AGENT]), 0);
    service.stop();
}

#[test]
fn an_issuer_without_the_new_key_learns_that_its_statement_is_registered_and_gets_the_receipt_with_it() {
    let log = Log::sqlite();
    let service = with_receipts(&log);
    let rotated = log.on_admin(&service, &["key", "rotate", "receipt"]).must_succeed().json();
    fs::write(log.path("s.cose"), signed(4, AGENT, receipt_json(4)).bytes()).unwrap();
    let refused = must_end_with(ask(&log, &service, &["register", "s.cose"]), 4);
    assert_eq!(refused["error"]["code"], "unknown-log-key", "{refused}");
    assert!(refused.to_string().contains("the statement is registered"), "{refused}");
    assert!(!log.path("s.cose.receipt").exists());
    let kid = rotated["kid"].as_str().unwrap();
    let flags = ["trust", "add", "log", "--trust", "trust.toml", "--kid", kid, "--url", service.url()];
    until(SOON, || "the new key is not published", || log.tabellion(&flags).code == Some(0));
    must_end_with(ask(&log, &service, &["register", "s.cose"]), 0);
    assert!(log.path("s.cose.receipt").exists());
    service.stop();
}

#[test]
fn a_statement_that_has_ended_since_is_verified_and_bundled_by_the_receipt_of_its_registration() {
    let log = Log::sqlite();
    let service = with_receipts(&log);
    fs::write(log.path("issuer.pem"), es256().public_key().to_spki_pem()).unwrap();
    let issuer = ["--trust", "trust.toml", "--iss", ISSUER, "--key", "issuer.pem"];
    log.tabellion(&[&["trust", "add", "issuer"], &issuer[..]].concat()).must_succeed();
    let keys = ["--kid", &receipt_kid(&log), "--checkpoint-key", &log.vkey(), "--url", service.url()];
    log.tabellion(&[&["trust", "add", "log", "--trust", "trust.toml"], &keys[..]].concat()).must_succeed();

    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let end = now() + 5;
    let statement = StatementBuilder::new("{}").content_type("application/json").kid(KID.as_bytes());
    let statement = statement.iss(ISSUER).sub("ends").claim(EXP, end.into()).sign(&es256()).unwrap();
    must_be_registered(&mut service.connection(), &statement);
    fs::write(log.path("ends.cose"), statement.bytes()).unwrap();
    until(SOON, || "it has not ended".to_owned(), || now() > end);
    log.register(&service, 1);

    let get = ["receipt", "get", "ends.cose", "--url", service.url(), "--output"];
    log.tabellion(&[&get[..], &["of.receipt"]].concat()).must_succeed();
    log.tabellion(&[&get[..], &["fresh.receipt", "--fresh"]].concat()).must_succeed();
    let verify = |receipt: &str| {
        let verify = ["verify", "ends.cose", "--receipt", receipt, "--trust", "trust.toml", "--json"];
        log.tabellion(&verify)
    };
    must_end_with(verify("of.receipt"), 0);
    let fresh = must_end_with(verify("fresh.receipt"), 4);
    assert_eq!(fresh["reason"], "registration-time-unknown");
    let bundled = must_end_with(ask(&log, &service, &["bundle", "ends.cose", "--output", "ends.bundle"]), 0);
    assert_eq!(bundled["entries"], 1);
}

on_both_databases! {
    fn an_agent_is_counted_from_verified_statements_without_its_own(log: Log) {
        let service = with_receipts(&log);
        let mut connection = service.connection();
        must_be_registered(&mut connection, &signed(4, &did(4), receipt_json(4)));
        let hidden = VrfStatement::new(receipt_json(5), did(4)).sign(&key(1)).unwrap();
        must_be_registered(&mut connection, &hidden);

        let view = must_end_with(ask(&log, &service, &["agent", "view", AGENT]), 0);
        assert_eq!((&view["receipts"], &view["pass"], &view["fail"]), (&json!(3), &json!(2), &json!(1)));
        assert_eq!(view["pass_rate"], 0.667);
        assert_eq!(view["by_issuer"][did(3)]["fail"], 1);
        assert_eq!(view["by_task_type"]["code_generation"]["receipts"], 1);
        assert_eq!(view["by_tier"]["0"]["receipts"], 3);
        assert!(view["tree_size"].as_u64().unwrap() >= 4, "{view}");
        let of_one = must_end_with(ask(&log, &service, &["agent", "view", AGENT, "--issuer", &did(3)]), 0);
        assert_eq!((&of_one["receipts"], &of_one["pass"]), (&json!(1), &json!(0)));

        let own = must_end_with(ask(&log, &service, &["agent", "view", &did(4)]), 0);
        assert_eq!((&own["receipts"], &own["self_issued"]), (&json!(1), &json!({ "receipts": 1, "pass": 1 })));
        let untrusted = ["agent", "view", AGENT, "--url", service.url(), "--trust", "nobody.toml", "--json"];
        let untrusted = must_end_with(log.tabellion(&untrusted), 4);
        assert_eq!((&untrusted["receipts"], &untrusted["unverified"]), (&json!(0), &json!(3)));
        must_end_with(ask(&log, &service, &["agent", "view", "did:web:nobody.example"]), 5);
    }
}

on_both_databases! {
    fn the_chains_of_all_verifiers_about_an_agent_are_walked(log: Log) {
        let service = with_receipts(&log);
        let mut connection = service.connection();
        let first = signed(1, AGENT, receipt_json(1));
        let after = |n| VrfStatement::new(receipt_json(n), AGENT).after(first.digest(), 1).sign(&key(1)).unwrap();
        must_be_registered(&mut connection, &after(6));
        assert!(matches!(settled(&mut connection, &after(7)), 400 | 404));
        let walked = must_end_with(ask(&log, &service, &["vrf", "chain", "--agent", AGENT]), 3);
        let chains = walked["chains"].as_array().unwrap();
        assert_eq!(chains.len(), 3);
        let forked = chains.iter().find(|chain| chain["issuer"] == did(1)).unwrap();
        assert_eq!(forked["receipts"].as_array().unwrap().len(), 2);
        let fork = &forked["forks"][0];
        assert_eq!((&fork["proven"], &fork["refused"]), (&json!(true), &json!(after(7).digest().to_string())));
        let whole = chains.iter().filter(|chain| chain["whole"] == true).count();
        assert_eq!(whole, 2, "{walked}");
    }
}

#[test]
fn a_chain_with_an_erased_receipt_accuses_nobody() {
    let log = Log::sqlite();
    let service = with_receipts(&log);
    let mut connection = service.connection();
    let first = signed(1, AGENT, receipt_json(1));
    let after = |n, previous: &SignedStatement, position| {
        VrfStatement::new(receipt_json(n), AGENT).after(previous.digest(), position).sign(&key(1)).unwrap()
    };
    let second = after(6, &first, 1);
    let third = after(7, &second, 2);
    for statement in [&second, &third] {
        must_be_registered(&mut connection, statement);
    }
    let erased = second.digest().to_string();
    let erase = ["entry", "erase", &erased, "--reason", "asked to", "--key", "keys/operator.pem"];
    log.tabellion(&[&erase[..], &["--url", service.url()]].concat()).must_succeed();
    let statement = format!("/v1/entries/{erased}/statement");
    until(SOON, || format!("{erased} is still there"), || connection.get(&statement).status == 410);

    let walked = must_end_with(ask(&log, &service, &["vrf", "chain", &did(1), "--sub", AGENT]), 4);
    let chain = &walked["chains"][0];
    assert_eq!(
        (&chain["whole"], &chain["misplaced"], &chain["gaps"]),
        (&json!(false), &json!([]), &json!([]))
    );
    assert_eq!(
        (&chain["erased"][0]["entry_id"], &chain["erased"][0]["position"]),
        (&json!(erased), &json!(1))
    );
    assert_eq!(chain["heads"], json!([third.digest().to_string()]));
}

#[test]
fn enough_listed_verifiers_must_have_passed_the_artifact() {
    let log = Log::sqlite();
    let service = with_receipts(&log);
    for (n, receipt) in [(1, 1), (2, 1), (3, 3)] {
        let folder = n.to_string();
        fs::create_dir(log.path(&folder)).unwrap();
        let fetch = ["vrf", "fetch", &id(receipt), "--issuer", &did(n), "--output", &folder];
        must_end_with(ask(&log, &service, &fetch), 0);
    }
    service.stop();
    let listed = [did(1), did(2), did(3)].join(",");
    let files = [format!("1/{}", id(1)), format!("2/{}", id(1)), format!("3/{}", id(3))];
    let files = files.map(|file| format!("{file}.transparent.cose"));
    let require = |needed: &str, files: &[&str], more: &[&str]| {
        let command = ["verify", "--json", "--trust", "trust.toml", "--require", needed, &listed];
        log.tabellion(&[&command[..], files, more].concat())
    };
    let all = [&*files[0], &*files[1], &*files[2]];
    let report = must_end_with(require("2-of", &all, &["--artifact", "artifact"]), 0);
    assert_eq!((&report["met"], &report["counted"]), (&json!(true), &json!(2)));
    assert_eq!(report["verifiers"][2]["reason"], "its verdict is fail");
    assert_eq!(report["work"]["agent"], AGENT);
    let report = must_end_with(require("2-of", &all[..1], &[]), 4);
    assert_eq!(report["verifiers"][1]["reason"], "none of the statements is by it");
    must_end_with(require("2-of", &all, &["--artifact", "trust.toml"]), 4);
    must_end_with(require("4-of", &all, &[]), 2);
    must_end_with(log.tabellion(&["verify", "--json", "--trust", "trust.toml", all[0], all[1]]), 2);
    must_end_with(log.tabellion(&["verify", "--json", "--artifact", "artifact", all[0]]), 2);

    let mut broken = fs::read(log.path(all[1])).unwrap();
    *broken.last_mut().unwrap() ^= 1;
    fs::write(log.path("broken.cose"), broken).unwrap();
    let report = must_end_with(require("2-of", &[all[0], "broken.cose"], &[]), 3);
    assert_eq!(report["counted"], 1);
}

#[test]
fn a_receipt_is_exported_for_other_protocols() {
    let log = Log::sqlite();
    let statement = signed(1, AGENT, receipt_json(1));
    fs::write(log.path("one.cose"), statement.bytes()).unwrap();
    let export = |protocol: &str| {
        let url = "https://log.example/base/";
        let ran = log.tabellion(&["vrf", "export", "--for", protocol, "--url", url, "one.cose"]);
        ran.must_succeed().json()
    };
    let memo = export("acp")["delivery_memo"].clone();
    let expected = json!({
        "vrf_receipt_id": id(1),
        "vrf_verdict": "pass",
        "vrf_transparency_url": format!("https://log.example/base/entries/{}", statement.digest()),
    });
    assert_eq!(memo, expected);
    assert_eq!(export("x402")["payment_memo"]["vrf_verdict"], "pass");
    assert_eq!(export("a2a")["mimeType"], "application/vrf+json");
    assert_eq!(export("mcp")["_meta"]["dev.tabellion/vrf"]["vrf_receipt_id"], id(1));
    assert_eq!(export("in-toto")["predicate"]["vrf_receipt"], receipt_json(1));
    let redacted = VrfStatement::new(receipt_json(2), AGENT).redacted();
    fs::write(log.path("two.cose"), redacted.sign(&key(1)).unwrap().bytes()).unwrap();
    fs::write(log.path("two.disclosure"), redacted.byte_string()).unwrap();
    let hidden = ["vrf", "export", "--for", "acp", "--url", "https://log.example", "two.cose", "--json"];
    assert_eq!(must_end_with(log.tabellion(&hidden), 2)["error"]["code"], "not-disclosed");
    log.tabellion(&[&hidden[..], &["--disclosed", "two.disclosure"]].concat()).must_succeed();
}
