//! What the operators of a log do to it is on the log: freezes, holds, releases; and what needs two of them.

use std::fs;

use black_box::{Log, OPERATOR_TOKEN, Ran, Service, on_both_databases};
use scitt::{Receipt, Signer, SigningKey};
use serde_json::Value;

const FIRST: &str = "keys/operator.pem";
const SECOND: &str = "keys/second.pem";

fn registered(log: &Log, service: &Service) -> String {
    let statement = log.statement();
    service.connection().register(&statement);
    statement.digest().to_string()
}

fn freeze(log: &Log, service: &Service, key: &str) -> Ran {
    log.on_admin(service, &["log", "freeze", "--for-ever", "--reason", "replaced by log 2", "--key", key])
}

fn on_entry(log: &Log, service: &Service, verb: &str, id: &str, key: &str) -> Ran {
    log.on_admin(service, &["entry", verb, id, "--case", "2026-17", "--key", key])
}

fn on_url(log: &Log, service: &Service, arguments: &[&str]) -> Ran {
    log.tabellion(&[arguments, &["--url", service.url(), "--json"]].concat())
}

/// What the log alone tells of its operators.
fn audited(log: &Log) -> Value {
    log.tabellion(&["audit", "--json"]).must_succeed().json()
}

#[track_caller]
fn must_be_frozen(log: &Log, service: &Service) {
    let answer = service.connection().post(log.statement().bytes());
    assert_eq!(answer.refusal(), (403, "Log Frozen".to_owned()), "{answer:?}");
    assert_eq!(answer.problem().get_code(), Some("log-frozen"), "{answer:?}");
}

#[track_caller]
fn must_be_refused(ran: &Ran, word: &str) {
    assert_ne!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains(word), "{word}: {ran}");
}

/// A log with a second operator, where both must agree to what cannot be undone.
fn of_two(log: &Log) -> String {
    with_second(log, "[operator_actions]\nrequired = 2\n\n")
}

/// A log with a second operator, whose key is ES256, and with these tables in its policy.
fn with_second(log: &Log, tables: &str) -> String {
    log.tabellion(&["issuer", "new", "--output", SECOND]).must_succeed();
    let second = SigningKey::from_pkcs8_pem(&fs::read_to_string(log.path(SECOND)).unwrap()).unwrap();
    let policy = testkit::policy_toml().replacen(
        "[[issuer]]",
        &format!("[[operator]]\nkey = \"{}\"\n\n{tables}[[issuer]]", second.public_key().did_key()),
        1,
    );
    log.set_policy(&policy);
    policy
}

on_both_databases! {
    fn a_log_ends_with_the_operators_statement_and_every_process_and_restart_keeps_to_it(log: Log) {
        let service = log.serve();
        let before = log.statement();
        let receipt = service.connection().register(&before);
        let usage = log.on_admin(&service, &["log", "freeze", "--for-ever", "--reason", "x"]);
        assert_eq!(usage.code, Some(2), "{usage}");
        must_be_refused(&freeze(&log, &service, "keys/receipt.pem"), "not-an-operator");
        registered(&log, &service);

        let frozen = freeze(&log, &service, FIRST).must_succeed().json();
        assert_eq!((&frozen["size"], &frozen["signed"]), (&4.into(), &4.into()), "{frozen}");
        must_be_frozen(&log, &service);
        assert_eq!(freeze(&log, &service, FIRST).must_succeed().json(), frozen, "the same statement is the same entry");
        let other = ["log", "freeze", "--for-ever", "--reason", "once more", "--key", FIRST];
        must_be_refused(&log.on_admin(&service, &other), "frozen");
        service.kill();
        let service = log.serve();
        must_be_frozen(&log, &service);
        let answer = service.connection().post(before.bytes());
        assert_eq!(answer.status, 201, "what is registered has its receipt");
        assert_eq!(
            Receipt::parse(answer.body).unwrap().inclusion_proofs()[0].leaf_index,
            receipt.inclusion_proofs()[0].leaf_index
        );
        service.stop();

        let told = audited(&log);
        let action = &told["actions"][0];
        assert_eq!((&action["action"], &action["leaf"]), (&"freeze".into(), &3.into()), "{told}");
        assert_eq!(action["reason"], "replaced by log 2");
        assert_eq!(action["operator"], testkit::operator().public_key().did_key());
        log.must_be_sound();

        log.tabellion(&["log", "export", "log.export"]).must_succeed();
        let to = black_box::Database::Sqlite(log.path("copy.db"));
        log.tabellion(&["log", "import", "log.export", "--db", &to.url()]).must_succeed();
        log.configure(&format!("db = \"{}\"", to.url()));
        let service = log.serve();
        must_be_frozen(&log, &service);
        service.stop();
        log.must_be_sound();
    }

    fn a_freeze_is_repeated_with_any_signature_and_another_one_is_refused(log: Log) {
        with_second(&log, "");
        let service = log.serve();
        let frozen = freeze(&log, &service, SECOND).must_succeed().json();
        for key in [SECOND, FIRST] {
            assert_eq!(freeze(&log, &service, key).must_succeed().json(), frozen, "signed by {key}");
        }
        let other = ["log", "freeze", "--for-ever", "--reason", "once more", "--key", SECOND];
        must_be_refused(&log.on_admin(&service, &other), "Frozen Already");
        service.stop();
        log.must_be_sound();
    }

    fn the_stolen_key_of_a_frozen_log_is_marked_and_not_replaced(log: Log) {
        let service = log.serve();
        registered(&log, &service);
        freeze(&log, &service, FIRST).must_succeed();
        let keys = || fs::read_dir(log.path("keys")).unwrap().count();
        let before = keys();
        must_be_refused(&log.on_admin(&service, &["key", "rotate", "receipt", "--compromised-since", "2"]), "frozen");
        assert_eq!(keys(), before, "no private key is left over");
        let known = log.on_admin(&service, &["key", "list"]).must_succeed().json();
        let is_receipt_key = |key: &&Value| key["signs"] == "receipts";
        let key = known["keys"].as_array().unwrap().iter().find(is_receipt_key).unwrap();
        let kid = key["kid"].as_str().unwrap().to_owned();
        let revoke = ["key", "revoke", &kid, "--since", "2"];
        let marked = log.on_admin(&service, &revoke).must_succeed().json();
        let key = marked["keys"].as_array().unwrap().iter().find(is_receipt_key).unwrap();
        assert_eq!(key["compromised_size"], 2, "{marked}");
        service.stop();
        must_be_refused(&log.tabellion(&["key", "rotate", "checkpoint", "--json"]), "log-frozen");
        assert_eq!(keys(), before);
    }

    fn who_held_and_released_what_is_told_by_the_log_alone(log: Log) {
        let service = log.serve();
        let (one, other) = (registered(&log, &service), registered(&log, &service));
        must_be_refused(&on_entry(&log, &service, "hold", &one, "keys/receipt.pem"), "not-an-operator");
        let hold = on_entry(&log, &service, "hold", &one, FIRST).must_succeed().json();
        assert_eq!((&hold[0]["entry_id"], &hold[0]["case"]), (&one.clone().into(), &"2026-17".into()));
        let again = on_entry(&log, &service, "hold", &one, FIRST).must_succeed().json();
        assert_eq!(again[0]["since"], hold[0]["since"], "a second hold is the first");
        on_entry(&log, &service, "hold", &other, FIRST).must_succeed();
        must_be_refused(&on_entry(&log, &service, "hold", &"00".repeat(32), FIRST), "not in this log");
        on_entry(&log, &service, "release", &one, FIRST).must_succeed();
        must_be_refused(&on_entry(&log, &service, "release", &one, FIRST), "not-held");
        on_entry(&log, &service, "hold", &one, FIRST).must_succeed();
        on_entry(&log, &service, "release", &one, FIRST).must_succeed();
        service.stop();

        let told = audited(&log);
        let actions: Vec<(&str, &str)> = told["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|action| (action["action"].as_str().unwrap(), action["entry"].as_str().unwrap()))
            .collect();
        let (one, other) = (&*one, &*other);
        let expected =
            [("hold", one), ("hold", other), ("release", one), ("hold", one), ("release", one)];
        assert_eq!(actions, expected, "{told}");
        assert_eq!(told["held"].as_array().unwrap().len(), 1, "{told}");
        assert_eq!((&told["held"][0]["entry"], &told["held"][0]["case"]), (&other.into(), &"2026-17".into()));
        log.must_be_sound();

        // A database that forgets a hold contradicts its log.
        let service = log.serve();
        let erase = ["entry", "erase", other, "--reason", "asked to", "--key", FIRST];
        must_be_refused(&on_url(&log, &service, &erase), "entry-held");
    }

    fn what_needs_two_operators_is_not_done_by_one(log: Log) {
        let policy = of_two(&log);
        let service = log.serve();
        let id = registered(&log, &service);

        // An erasure.
        let erase = ["entry", "erase", &id, "--reason", "asked to"];
        let alone = on_url(&log, &service, &[&erase[..], &["--key", FIRST]].concat());
        must_be_refused(&alone, "operator-approvals");
        assert!(alone.stderr.contains("1 of 2 operators"), "{alone}");
        on_url(&log, &service, &[&erase[..], &["--write", "erase.json"]].concat()).must_succeed();
        let early = on_url(&log, &service, &["operator", "submit", "erase.json", "--key", FIRST]);
        must_be_refused(&early, "missing: approval of sha-256:");
        on_url(&log, &service, &["operator", "approve", "erase.json", "--key", FIRST]).must_succeed();
        let own = on_url(&log, &service, &["operator", "submit", "erase.json", "--key", FIRST]);
        must_be_refused(&own, "operator-approvals");
        let stranger = on_url(&log, &service, &["operator", "approve", "erase.json", "--key", "keys/receipt.pem"]);
        must_be_refused(&stranger, "not-an-operator");
        let told = on_url(&log, &service, &["operator", "approve", "erase.json", "--key", SECOND]).must_succeed().json();
        assert!(told["does"][0].as_str().unwrap().contains(&id), "{told}");
        on_url(&log, &service, &["operator", "approve", "erase.json", "--key", SECOND]).must_succeed();
        on_url(&log, &service, &["operator", "submit", "erase.json", "--key", FIRST]).must_succeed();

        // What was approved is done once.
        let replayed = on_url(&log, &service, &["operator", "submit", "erase.json", "--key", SECOND]);
        must_be_refused(&replayed, "erasure-sequence");
        let other = registered(&log, &service);
        let next = ["entry", "erase", &other, "--reason", "asked to", "--key", FIRST];
        must_be_refused(&on_url(&log, &service, &next), "operator-approvals");

        // A hold needs one operator, its release two, each release its own approvals.
        for n in ["1", "2"] {
            on_entry(&log, &service, "hold", &other, FIRST).must_succeed();
            must_be_refused(&on_entry(&log, &service, "release", &other, FIRST), "1 of 2 operators");
            let file = format!("release{n}.json");
            log.on_admin(&service, &["entry", "release", &other, "--case", "2026-17", "--write", &file]).must_succeed();
            must_be_refused(
                &on_url(&log, &service, &["operator", "submit", &file, "--key", FIRST]),
                "operator-approvals",
            );
            on_url(&log, &service, &["operator", "approve", &file, "--key", SECOND]).must_succeed();
            on_url(&log, &service, &["operator", "submit", &file, "--key", FIRST]).must_succeed();
        }
        on_url(&log, &service, &["operator", "approve", "release1.json", "--key", FIRST]).must_succeed();
        let replayed = on_url(&log, &service, &["operator", "submit", "release1.json", "--key", SECOND]);
        must_be_refused(&replayed, "operator-hold-number-unique");

        // A policy.
        let next = policy.replace("revision = 0", "revision = 1").replace("required = 2", "required = 1");
        fs::write(log.path("next.toml"), next).unwrap();
        must_be_refused(
            &on_url(&log, &service, &["policy", "publish", "next.toml", "--key", FIRST]),
            "operator-approvals",
        );
        on_url(&log, &service, &["policy", "publish", "next.toml", "--write", "policy.json"]).must_succeed();
        on_url(&log, &service, &["operator", "approve", "policy.json", "--key", FIRST]).must_succeed();

        // A freeze; to move the log from here is a freeze as well.
        must_be_refused(&freeze(&log, &service, FIRST), "1 of 2 operators");
        let token = format!("Bearer {OPERATOR_TOKEN}");
        let headers = [("Content-Type", "application/json"), ("Authorization", &*token)];
        let ours = format!("{{\"origin\":\"{}\"}}", testkit::ORIGIN);
        let answer = service.admin().send("POST", "/freeze", &headers, ours.as_bytes());
        assert_eq!(answer.status, 403, "{answer:?}");
        let write = ["log", "freeze", "--for-ever", "--reason", "done", "--write", "freeze.json"];
        log.tabellion(&write).must_succeed();
        on_url(&log, &service, &["operator", "approve", "freeze.json", "--key", FIRST]).must_succeed();
        on_url(&log, &service, &["operator", "submit", "policy.json", "--key", SECOND]).must_succeed();
        assert_eq!(on_url(&log, &service, &["policy", "show"]).must_succeed().json()["revision"], 1);
        on_url(&log, &service, &["operator", "submit", "freeze.json", "--key", SECOND]).must_succeed();
        service.stop();
        log.set_policy(&fs::read_to_string(log.path("next.toml")).unwrap());
        let service = log.serve();
        must_be_frozen(&log, &service);
        service.stop();
        log.must_be_sound();
        assert_eq!(audited(&log)["held"].as_array().unwrap().len(), 0);
    }
}

/// A service that has one key does not put in force what needs two.
#[test]
fn a_service_does_not_publish_a_policy_that_needs_two_operators() {
    let log = Log::sqlite();
    let policy = of_two(&log);
    let service = log.serve();
    registered(&log, &service);
    service.stop();
    log.set_policy(&policy.replace("revision = 0", "revision = 1"));
    let ran = log.serve_in_vain();
    assert!(ran.stderr.contains("1 of 2 operators"), "{ran}");
}

/// To raise the revision of the older file would undo what was published.
#[test]
fn a_service_whose_policy_file_is_older_than_the_published_policy_says_so() {
    let log = Log::sqlite();
    let service = log.serve();
    let next = fs::read_to_string(log.path("policy.toml")).unwrap().replace("revision = 0", "revision = 1");
    fs::write(log.path("next.toml"), &next).unwrap();
    on_url(&log, &service, &["policy", "publish", "next.toml", "--key", FIRST]).must_succeed();
    service.stop();
    let ran = log.serve_in_vain();
    assert!(ran.stderr.contains("older than the policy in force"), "{ran}");
    assert!(ran.stderr.contains("tabellion policy show") && !ran.stderr.contains("set revision"), "{ran}");
    log.set_policy(&next);
    log.serve().stop();
}

#[test]
fn a_policy_that_more_operators_must_agree_to_than_there_are_is_refused() {
    let log = Log::sqlite();
    let policy = of_two(&log);
    for (from, to, word) in [
        ("required = 2", "required = 3", "the policy has 2"),
        ("required = 2", "freeze = 2", "could lower this by a policy"),
        ("required = 2", "required = 0", "at least one operator"),
        ("max_size = 4096", "max_size = 4096\nretention = \"1 day\"", "operator_actions.erasure = 1"),
    ] {
        fs::write(log.path("wrong.toml"), policy.replace(from, to)).unwrap();
        let ran = log.tabellion(&["policy", "validate", "wrong.toml"]);
        must_be_refused(&ran, word);
    }
}
