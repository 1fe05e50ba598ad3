//! A gateway's audit stream as anyone sees it: what is missing, what is open, and what was taken out.
#![allow(clippy::unwrap_used)]

use black_box::{Connection, on_both_databases};
use scitt::SignedStatement;
use serde_json::{Value, json};
use testkit::{GATEWAY, SESSION, audit_json, audit_record, decision_json, outcome_json};

fn register(connection: &mut Connection, statement: &SignedStatement) {
    let answer = connection.post(statement.bytes());
    assert_eq!(answer.status, 201, "{answer:?}");
}

fn stream(connection: &mut Connection, name: &str) -> Value {
    let gateway = GATEWAY.replace(':', "%3A").replace('/', "%2F");
    let answer = connection.get(&format!("/v1/streams/{gateway}/{name}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_slice(&answer.body).unwrap()
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|item| item["seq"].as_u64().unwrap()).collect()
}

on_both_databases! {
    fn a_gap_and_a_decision_without_outcome_are_seen_until_they_are_closed(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let first = audit_record(&decision_json(SESSION, 0));
        let second = audit_record(&decision_json(SESSION, 3));
        register(&mut connection, &second);
        register(&mut connection, &first);
        register(&mut connection, &audit_record(&outcome_json(SESSION, 1, &first.digest())));
        register(&mut connection, &audit_record(&decision_json("session-2", 0)));

        let seen = stream(&mut connection, SESSION);
        assert_eq!(numbers(&seen["records"]), [0, 1, 3], "in order, of this stream alone: {seen}");
        assert_eq!(seen["gaps"], json!([{ "from": 2, "to": 2 }]));
        assert_eq!(numbers(&seen["open_decisions"]), [3]);
        assert_eq!((&seen["closed"], &seen["truncated"]), (&false.into(), &false.into()));

        // An outcome that comes before its decision says so, and a closed stream has no tail missing.
        let late = audit_record(&decision_json(SESSION, 2));
        register(&mut connection, &audit_record(&outcome_json(SESSION, 5, &late.digest())));
        let seen = stream(&mut connection, SESSION);
        assert_eq!(numbers(&seen["unknown_decisions"]), [5], "{seen}");
        register(&mut connection, &late);
        register(&mut connection, &audit_record(&outcome_json(SESSION, 4, &second.digest())));
        register(&mut connection, &audit_record(&audit_json("closed", SESSION, 6)));
        let seen = stream(&mut connection, SESSION);
        for list in ["gaps", "open_decisions", "unknown_decisions", "erased"] {
            assert_eq!(seen[list], json!([]), "{list} of {seen}");
        }
        assert_eq!(seen["closed"], true);

        // A record that was erased keeps its number: it is no gap.
        let id = late.digest().to_string();
        let flags = ["--reason", "r", "--key", "keys/operator.pem", "--url", service.url()];
        log.tabellion(&[&["entry", "erase", &id], &flags[..]].concat()).must_succeed();
        let seen = stream(&mut connection, SESSION);
        assert_eq!((&seen["erased"], &seen["gaps"]), (&json!([2]), &json!([])), "{seen}");
        assert_eq!(connection.get("/v1/streams/nobody/nothing").status, 404);
        service.stop();
        log.must_be_sound();
    }

    fn a_number_is_used_once_and_a_decision_has_one_outcome(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let decision = audit_record(&decision_json(SESSION, 0));
        register(&mut connection, &decision);
        register(&mut connection, &audit_record(&outcome_json(SESSION, 1, &decision.digest())));
        let refused = |connection: &mut Connection, record: &Value| {
            let answer = connection.post(audit_record(record).bytes());
            assert_eq!(answer.status, 400, "{answer:?}");
            String::from_utf8_lossy(&answer.body).into_owned()
        };
        let said = refused(&mut connection, &decision_json(SESSION, 1));
        assert!(said.contains("vap-audit-sequence-unique"), "{said}");
        let said = refused(&mut connection, &outcome_json(SESSION, 2, &decision.digest()));
        assert!(said.contains("vap-audit-outcome-unique"), "{said}");
        let policy = connection.get("/v1/policy");
        let policy: Value = serde_json::from_slice(&policy.body).unwrap();
        let policy = policy["entry_id"].as_str().unwrap().parse().unwrap();
        let said = refused(&mut connection, &outcome_json(SESSION, 2, &policy));
        assert!(said.contains("vap-audit-no-decision"), "{said}");
    }
}
