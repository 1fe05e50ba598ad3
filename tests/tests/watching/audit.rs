//! `tabellion audit`: the same decisions from the log alone, beside the service that writes it.

use std::fs;

use black_box::{Log, Ran, Service, on_both_databases};
use data_encoding::BASE64URL_NOPAD;
use scitt::KeySet;
use serde_json::Value;

fn error(ran: &Ran) -> Value {
    let error: Value = serde_json::from_str(&ran.stderr).unwrap_or_else(|why| panic!("{why}: {ran}"));
    error["error"]["code"].clone()
}

/// Writes `trust.toml`, with the log's receipt key.
fn trust(log: &Log, service: &Service) {
    let keys = KeySet::parse(&service.connection().get("/.well-known/scitt-keys").body).unwrap();
    let kid = BASE64URL_NOPAD.encode(keys.keys()[0].kid.as_deref().unwrap());
    let add = ["trust", "add", "log", "--kid", &kid, "--url", service.url(), "--trust", "trust.toml"];
    log.tabellion(&add).must_succeed();
}

on_both_databases! {
    fn a_log_is_audited_while_it_is_served(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        for _ in 0..5 {
            connection.post(log.statement().bytes());
        }
        let ran = log.tabellion(&["audit", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran}");
        let report = ran.json();
        assert_eq!((&report["entries"], &report["decided"], &report["clean"]), (&6.into(), &6.into(), &true.into()));
        assert!(report["signatures"].as_u64().unwrap() >= 1, "{report}");
        service.stop();
    }

    fn an_audit_goes_on_where_it_stood(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        connection.post(log.statement().bytes());
        let first = log.tabellion(&["audit", "--json", "--resume", "audit.json"]);
        assert_eq!(first.json()["entries"], 2, "{first}");
        connection.post(log.statement().bytes());
        let second = log.tabellion(&["audit", "--json", "--resume", "audit.json"]);
        assert_eq!((second.code, &second.json()["entries"]), (Some(0), &3.into()), "{second}");
        let state: Value = serde_json::from_slice(&fs::read(log.path("audit.json")).unwrap()).unwrap();
        assert_eq!(state["next"], 3);
        service.stop();
    }

    fn somebody_outside_comes_to_the_same_decisions(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        for _ in 0..3 {
            connection.post(log.statement().bytes());
        }
        trust(&log, &service);
        let url = service.url().to_owned();
        let audit = ["audit", "--json", "--url", &url, "--trust", "trust.toml", "--resume", "outside.json"];
        let ran = log.tabellion(&audit);
        assert_eq!(ran.code, Some(0), "{ran}");
        let report = ran.json();
        assert_eq!((&report["entries"], &report["decided"]), (&4.into(), &4.into()), "{report}");
        assert_eq!((&report["told_times"], &report["untold_times"]), (&0.into(), &0.into()), "all are signed: {report}");
        assert!(report["heads"].as_u64() >= Some(1) && report["heads"] == report["signatures"], "{report}");
        connection.post(log.statement().bytes());
        let ran = log.tabellion(&audit);
        assert_eq!((ran.code, &ran.json()["entries"]), (Some(0), &5.into()), "{ran}");
        let inside = log.tabellion(&["audit", "--json", "--resume", "outside.json"]);
        assert_eq!((inside.code, error(&inside)), (Some(1), "audit-state".into()), "another kind of source");
        fs::write(log.path("empty.toml"), "").unwrap();
        let stranger = log.tabellion(&["audit", "--json", "--url", &url, "--trust", "empty.toml"]);
        assert_eq!((stranger.code, error(&stranger)), (Some(4), "no-trust-anchors".into()), "{stranger}");
        service.stop();
        assert_eq!(log.tabellion(&[&audit[..], &["--timeout", "1"]].concat()).code, Some(7));
    }

    fn a_time_that_is_not_the_signed_one_is_found_from_outside(log: Log) {
        let service = log.serve();
        for _ in 0..3 {
            service.connection().post(log.statement().bytes());
        }
        trust(&log, &service);
        let audit = ["audit", "--json", "--url", service.url(), "--trust", "trust.toml"];
        assert_eq!(log.tabellion(&audit).code, Some(0));
        let late = "UPDATE batch SET at = at - 100000 WHERE batch = (SELECT max(batch) FROM batch)";
        log.database().by_hand("batch", &[late], &[late]);
        let ran = log.tabellion(&audit);
        assert_eq!(ran.code, Some(3), "{ran}");
        let report = ran.json();
        let findings = report["findings"].as_array().unwrap();
        assert!(findings.iter().any(|finding| finding["rule"] == "audit-head-signed"), "{report}");
        service.stop();
    }

    fn a_forged_receipt_is_named_with_its_entry_and_hides_no_other_finding(log: Log) {
        let service = log.serve();
        let forged = log.statement();
        service.connection().post(forged.bytes());
        for _ in 0..2 {
            service.connection().post(log.statement().bytes());
        }
        trust(&log, &service);
        let audit = ["audit", "--json", "--url", service.url(), "--trust", "trust.toml"];
        assert_eq!(log.tabellion(&audit).code, Some(0));
        let sqlite = "UPDATE head_signature SET bytes = CAST(substr(bytes, 1, length(bytes) - 1)
                      || CASE substr(bytes, -1) WHEN x'00' THEN x'01' ELSE x'00' END AS BLOB)
                      WHERE kind = 1 AND size = 2";
        let postgres = "UPDATE head_signature SET bytes = set_byte(bytes, length(bytes) - 1,
                        get_byte(bytes, length(bytes) - 1) # 1) WHERE kind = 1 AND size = 2";
        log.database().by_hand("head_signature", &[sqlite], &[postgres]);
        let ran = log.tabellion(&audit);
        assert_eq!(ran.code, Some(3), "{ran}");
        let report = ran.json();
        let finding = &report["findings"][0];
        assert_eq!((&finding["rule"], &finding["leaf"]), (&"audit-receipt".into(), &1.into()), "{report}");
        assert_eq!(finding["entry"], forged.digest().to_string(), "{report}");
        assert!(finding["detail"].as_str().unwrap().contains("which is not the one that the receipt signs"), "{report}");
        assert_eq!((&report["same"], &report["findings"][1]), (&report["entries"], &Value::Null), "{report}");
        let late = "UPDATE batch SET at = at - 100000 WHERE batch = (SELECT max(batch) FROM batch)";
        log.database().by_hand("batch", &[late], &[late]);
        let report = log.tabellion(&audit).json();
        let findings = report["findings"].as_array().unwrap();
        for rule in ["audit-receipt", "audit-head-signed"] {
            assert!(findings.iter().any(|finding| finding["rule"] == rule), "{rule}: {report}");
        }
        service.stop();
    }

    fn an_entry_that_is_not_served_is_named_from_outside_and_the_others_are_decided(log: Log) {
        let service = log.serve();
        let edited = log.statement();
        service.connection().post(edited.bytes());
        for _ in 0..3 {
            service.connection().post(log.statement().bytes());
        }
        trust(&log, &service);
        service.stop();
        log.database().flip_a_bit_of(&edited);
        let service = log.serve();
        let ran = log.tabellion(&["audit", "--json", "--url", service.url(), "--trust", "trust.toml"]);
        assert_eq!(ran.code, Some(3), "{ran}");
        let report = ran.json();
        assert_eq!((&report["entries"], &report["same"]), (&5.into(), &4.into()), "{report}");
        let finding = &report["findings"][0];
        assert_eq!(finding["leaf"], 1, "{report}");
        assert!(finding["detail"].as_str().unwrap().contains("it is not served"), "{report}");
        service.stop();
    }

    fn a_row_that_was_changed_is_named_and_ends_with_3(log: Log) {
        let service = log.serve();
        let statement = log.statement();
        service.connection().post(statement.bytes());
        service.stop();
        log.must_be_sound();
        log.database().flip_a_bit_of(&statement);
        let ran = log.tabellion(&["audit", "--json"]);
        assert_eq!(ran.code, Some(3), "{ran}");
        let finding = &ran.json()["findings"][0];
        assert_eq!((&finding["rule"], &finding["leaf"]), (&"audit-statement-digest".into(), &1.into()), "{ran}");
        let ran = log.tabellion(&["audit"]);
        assert!(ran.stdout.contains(&format!("FAIL  leaf 1 ({}): audit-statement-digest", statement.digest())), "{ran}");
    }
}

#[test]
fn a_database_alone_can_be_audited_and_nothing_can_not() {
    let log = Log::sqlite();
    let service = log.serve();
    service.stop();
    let db = log.database().url();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = log.command();
    let ran = command.current_dir(elsewhere.path()).args(["audit", "--db", &db]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(String::from_utf8_lossy(&ran.stdout).ends_with("the same decisions\n"));
    let mut command = log.command();
    let ran = command.current_dir(elsewhere.path()).args(["audit"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "no database is named");
}

#[test]
fn a_state_that_is_not_of_this_logs_history_is_refused() {
    let (log, other) = (Log::sqlite(), Log::sqlite());
    for log in [&log, &other] {
        let service = log.serve();
        service.connection().post(log.statement().bytes());
        service.stop();
    }
    let state = log.path("audit.json");
    let resume = ["audit", "--json", "--resume", state.to_str().unwrap()];
    log.tabellion(&resume).must_succeed();
    let ran = other.tabellion(&resume);
    assert_eq!((ran.code, error(&ran)), (Some(8), "audit-state".into()), "another history: {ran}");
    let backup = log.database().back_up();
    let service = log.serve();
    service.connection().post(log.statement().bytes());
    service.stop();
    log.tabellion(&resume).must_succeed();
    log.database().restore(&backup);
    let ran = log.tabellion(&resume);
    assert_eq!((ran.code, error(&ran)), (Some(8), "audit-state".into()), "what was audited is gone: {ran}");
    fs::write(&state, "{}").unwrap();
    assert_eq!(log.tabellion(&resume).code, Some(1));
}

#[test]
fn an_audit_of_entries_that_do_not_give_the_root_leaves_its_state_as_it_was() {
    let log = Log::sqlite();
    let resume = ["audit", "--json", "--resume", "audit.json"];
    let register = || {
        let service = log.serve();
        service.connection().post(log.statement().bytes());
        service.stop();
    };
    register();
    log.tabellion(&resume).must_succeed();
    let state = fs::read(log.path("audit.json")).unwrap();
    register();
    let sound = log.database().back_up();
    let wrong = "UPDATE batch SET root = zeroblob(32) WHERE batch = (SELECT max(batch) FROM batch)";
    log.database().by_hand("batch", &[wrong], &[]);
    let ran = log.tabellion(&resume);
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(fs::read(log.path("audit.json")).unwrap() == state, "{ran}");
    log.database().restore(&sound);
    let ran = log.tabellion(&resume);
    assert_eq!((ran.code, &ran.json()["entries"]), (Some(0), &3.into()), "{ran}");
}
