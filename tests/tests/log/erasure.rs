//! Bytes that go while their proofs stay: erasure, legal hold and retention, as an operator does them.

use std::time::Duration;

use black_box::{Answer, Connection, Log, Ran, Service, on_both_databases, until};
use scitt::{Receipt, SignedStatement};
use serde_json::Value;

const OPERATOR: &str = "keys/operator.pem";
/// How long something that happens by itself may take.
const SOON: Duration = Duration::from_secs(20);

fn statement_of(connection: &mut Connection, id: &str) -> Answer {
    connection.get(&format!("/v1/entries/{id}/statement"))
}

fn json(connection: &mut Connection, path: &str) -> Value {
    let answer = connection.get(path);
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_slice(&answer.body).unwrap()
}

fn erase(log: &Log, service: &Service, ids: &[&str]) -> Ran {
    let flags = ["--reason", "asked to", "--key", "keys/operator.pem", "--url", service.url(), "--json"];
    log.tabellion(&[&["entry", "erase"], ids, &flags[..]].concat())
}

fn on_admin(log: &Log, service: &Service, arguments: &[&str]) -> Ran {
    log.on_admin(service, &[&["entry"], arguments].concat())
}

/// Waits until the statement is gone.
fn expect_gone(connection: &mut Connection, id: &str) {
    until(SOON, || format!("{id} is still there"), || statement_of(connection, id).status == 410);
}

/// A short note, of the content type that the tests' policy keeps for a second only if told to.
fn note(text: &str) -> SignedStatement {
    scitt::StatementBuilder::new(text)
        .content_type("text/plain")
        .kid(testkit::KID)
        .iss(testkit::ISSUER)
        .sub("note")
        .sign(&testkit::es256())
        .unwrap()
}

on_both_databases! {
    fn what_is_erased_is_gone_and_its_proofs_stand(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let (gone, kept) = (log.statement(), log.statement());
        let receipt = connection.register(&gone);
        connection.register(&kept);
        let id = gone.digest().to_string();

        let ran = erase(&log, &service, &[&id]);
        assert_eq!(ran.must_succeed().json()[0]["erased"][0], *id);
        let answer = statement_of(&mut connection, &id);
        assert_eq!(answer.status, 410, "{answer:?}");
        assert!(answer.header("cache-control").is_none_or(|value| !value.contains("immutable")), "{answer:?}");
        assert_eq!(connection.get(&format!("/v1/entries/{id}/transparent")).status, 410);
        let entry = json(&mut connection, &format!("/v1/entries/{id}"));
        assert!(!entry.to_string().contains("thing-1"), "nothing of it is told: {entry}");
        assert_eq!(statement_of(&mut connection, &kept.digest().to_string()).status, 200);

        // The proofs: the one from before, a fresh one, and that of whoever hands it in again.
        let fresh = Receipt::parse(connection.get(&format!("/entries/{id}")).body).unwrap();
        let again = connection.register(&gone);
        for receipt in [&receipt, &fresh, &again] {
            receipt.implied_root(&gone.digest().leaf_hash()).unwrap();
        }
        assert_eq!(statement_of(&mut connection, &id).status, 410, "handing it in again restores nothing");

        let listed = json(&mut connection, "/v1/erasures");
        assert_eq!((&listed["next_sequence"], &listed["erasures"][0]["reason"]), (&1.into(), &"asked to".into()));
        service.stop();
        log.must_be_sound();
    }

    fn an_erasure_that_is_repeated_registers_no_other_one(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let (first, second) = (log.statement(), log.statement());
        connection.register(&first);
        connection.register(&second);
        let (first, second) = (first.digest().to_string(), second.digest().to_string());
        let done = erase(&log, &service, &[&first]).must_succeed().json();
        assert_eq!(erase(&log, &service, &[&first]).must_succeed().json(), done);
        assert_eq!(json(&mut connection, "/v1/erasures")["next_sequence"], 1);
        let both = erase(&log, &service, &[&first, &second]).must_succeed().json();
        assert_eq!((&both[0]["erased"][0], &both[1]), (&second.into(), &done[0]), "{both}");
        assert_eq!(both[0]["erased"].as_array().unwrap().len(), 1, "{both}");
        service.stop();
        log.must_be_sound();
    }

    fn a_statement_that_somebody_took_out_without_a_word_is_found(log: Log) {
        let service = log.serve();
        let statement = log.statement();
        service.connection().register(&statement);
        service.stop();
        log.must_be_sound();
        log.database().take_out(&statement);
        let ran = log.tabellion(&["log", "fsck", "--deep", "--json"]);
        assert_eq!(ran.code, Some(8), "{ran}");
        assert!(ran.stdout.contains("entry 1: the statement is missing without an erasure"), "names the entry: {ran}");
    }

    fn what_a_case_needs_is_not_erased_until_the_case_is_over(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let statement = log.statement();
        connection.register(&statement);
        let id = statement.digest().to_string();

        on_admin(&log, &service, &["hold", &id, "--case", "2026-17", "--key", OPERATOR]).must_succeed();
        let held = on_admin(&log, &service, &["holds"]).must_succeed().json();
        assert_eq!((&held[0]["entry_id"], &held[0]["case"]), (&id.clone().into(), &"2026-17".into()));
        let refused = erase(&log, &service, &[&id]);
        assert_ne!(refused.code, Some(0), "{refused}");
        assert!(refused.stderr.contains("entry-held") && refused.stderr.contains("2026-17"), "{refused}");
        assert_eq!(statement_of(&mut connection, &id).status, 200);
        assert_eq!(json(&mut connection, "/v1/erasures")["next_sequence"], 0, "nothing was registered");

        on_admin(&log, &service, &["release", &id, "--case", "2026-17", "--key", OPERATOR]).must_succeed();
        assert_ne!(on_admin(&log, &service, &["release", &id, "--case", "2026-17", "--key", OPERATOR]).code, Some(0));
        erase(&log, &service, &[&id]).must_succeed();
        assert_eq!(statement_of(&mut connection, &id).status, 410);
        let ran = on_admin(&log, &service, &["hold", &id, "--case", "too late", "--key", OPERATOR]);
        assert_ne!(ran.code, Some(0), "{ran}");
        service.stop();
        log.must_be_sound();
    }

    fn policies_and_erasures_stay_for_ever(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let policy = json(&mut connection, "/v1/policy")["entry_id"].as_str().unwrap().to_owned();
        let ran = erase(&log, &service, &[&policy]);
        assert!(ran.code != Some(0) && ran.stderr.contains("erasure-entry-permanent"), "{ran}");
        let statement = log.statement();
        connection.register(&statement);
        let done = erase(&log, &service, &[&statement.digest().to_string()]).must_succeed().json();
        let erasure = done[0]["entry_id"].as_str().unwrap();
        let ran = erase(&log, &service, &[erasure]);
        assert!(ran.code != Some(0) && ran.stderr.contains("erasure-entry-permanent"), "{ran}");
        let unknown = "00".repeat(32);
        let ran = erase(&log, &service, &[&unknown]);
        assert!(ran.code != Some(0) && ran.stderr.contains("erasure-entry-known"), "{ran}");
    }

    fn nobody_erases_but_the_operator(log: Log) {
        let service = log.serve();
        let statement = log.statement();
        service.connection().register(&statement);
        log.tabellion(&["issuer", "new", "--output", "issuer.pem"]).must_succeed();
        let id = statement.digest().to_string();
        let flags = ["--reason", "mine", "--key", "issuer.pem", "--url", service.url()];
        let ran = log.tabellion(&[&["entry", "erase", &id], &flags[..]].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains("not-an-operator"), "{ran}");
    }

    fn a_crash_between_the_statement_and_the_bytes_is_made_good_by_the_next_start(log: Log) {
        let service = log.serve();
        let statement = log.statement();
        service.connection().register(&statement);
        service.stop();
        // The next batch is the erasure: the process dies once it is committed, before anything is erased.
        let mut service = log.serve_until("after-commit", 1).unwrap_or_else(|ran| panic!("{ran}"));
        let id = statement.digest().to_string();
        let flags = ["--reason", "r", "--key", "keys/operator.pem", "--url", service.url(), "--timeout", "2"];
        let ran = log.tabellion(&[&["entry", "erase", &id], &flags[..]].concat());
        assert_ne!(ran.code, Some(0), "{ran}");
        service.wait();
        let service = log.serve();
        let mut connection = service.connection();
        assert_eq!(json(&mut connection, "/v1/erasures")["next_sequence"], 1, "it was committed");
        expect_gone(&mut connection, &id);
        service.stop();
        log.must_be_sound();
    }

    fn what_is_past_its_retention_goes_by_itself_but_for_what_is_held(log: Log) {
        log.configure("retention_sweep_seconds = 1");
        let toml = testkit::policy_toml();
        log.set_policy(&toml.replace("max_size = 4096", "max_size = 4096\nretention = \"1 second\""));
        let service = log.serve();
        let mut connection = service.connection();
        let (held, gone, kept) = (note("held"), note("gone"), log.statement());
        connection.register(&held);
        let id = held.digest().to_string();
        on_admin(&log, &service, &["hold", &id, "--case", "7", "--key", OPERATOR]).must_succeed();
        connection.register(&gone);
        connection.register(&kept);
        expect_gone(&mut connection, &gone.digest().to_string());
        assert_eq!(statement_of(&mut connection, &id).status, 200, "it is held");
        assert_eq!(statement_of(&mut connection, &kept.digest().to_string()).status, 200, "its type is kept");
        let listed = json(&mut connection, "/v1/erasures");
        assert_eq!(listed["erasures"][0]["rule"], "retention", "{listed}");
        on_admin(&log, &service, &["release", &id, "--case", "7", "--key", OPERATOR]).must_succeed();
        expect_gone(&mut connection, &id);
        service.stop();
        log.must_be_sound();
    }
}
