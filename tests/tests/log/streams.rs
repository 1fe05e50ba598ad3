//! A gateway's audit stream as anyone sees it: what is missing, what is open, and what was taken out.

use black_box::{Connection, on_both_databases};
use scitt::{SignedStatement, StatementBuilder};
use serde_json::{Value, json};
use testkit::{GATEWAY, ISSUER, KID, SESSION, audit_json, audit_record, decision_json, es256, outcome_json};

fn register(connection: &mut Connection, statement: &SignedStatement) {
    let answer = connection.post(statement.bytes());
    assert_eq!(answer.status, 201, "{answer:?}");
}

fn path_of_gateway() -> String {
    format!("/v1/streams/{}", GATEWAY.replace(':', "%3A").replace('/', "%2F"))
}

fn stream(connection: &mut Connection, name: &str) -> Value {
    let answer = connection.get(&format!("{}/{name}", path_of_gateway()));
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_slice(&answer.body).unwrap()
}

/// The gateway's streams on all pages of so many: each with the number of the first record that the log has of it.
fn listed(connection: &mut Connection, limit: usize) -> Vec<(String, u64)> {
    let mut path = format!("{}?limit={limit}", path_of_gateway());
    let mut streams = Vec::new();
    loop {
        let answer = connection.get(&path);
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        let page = page["streams"].as_array().unwrap();
        assert!(page.len() <= limit, "{page:?}");
        let name = |stream: &Value| stream["stream"].as_str().unwrap().to_owned();
        streams.extend(page.iter().map(|stream| (name(stream), stream["first"]["seq"].as_u64().unwrap())));
        let Some(link) = answer.header("link") else { return streams };
        let (_, next) = link.split_once("/v1/").unwrap();
        path = format!("/v1/{}", next.split_once('>').unwrap().0);
    }
}

/// A record of another gateway, which a policy of the tests binds as an issuer.
fn record_of_another(stream: &str) -> SignedStatement {
    let mut record = audit_json("closed", stream, 0);
    record["gateway"] = ISSUER.into();
    StatementBuilder::new(record.to_string())
        .content_type("application/vap-audit+json")
        .kid(KID)
        .iss(ISSUER)
        .sub(stream)
        .sign(&es256())
        .unwrap()
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

        // A record that was erased keeps its number: it is not a gap.
        let id = late.digest().to_string();
        let flags = ["--reason", "r", "--key", "keys/operator.pem", "--url", service.url()];
        log.tabellion(&[&["entry", "erase", &id], &flags[..]].concat()).must_succeed();
        let seen = stream(&mut connection, SESSION);
        assert_eq!((&seen["erased"], &seen["gaps"]), (&json!([2]), &json!([])), "{seen}");
        assert_eq!(connection.get("/v1/streams/nobody/nothing").status, 404);
        service.stop();
        log.must_be_sound();
    }

    fn every_stream_of_a_gateway_is_listed_whichever_record_is_missing(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        assert_eq!(connection.get(&path_of_gateway()).status, 404, "no record of this gateway");
        let long = "\u{fc}".repeat(250);
        let odd = "a/b?c \"d\" \u{fc}";
        let first = audit_record(&decision_json(SESSION, 3));
        register(&mut connection, &first);
        register(&mut connection, &audit_record(&decision_json(SESSION, 0)));
        for (stream, seq) in [("session-2", 0), ("session-2", 1), ("unbound:1", 7), (&long, 0), (odd, 2)] {
            register(&mut connection, &audit_record(&decision_json(stream, seq)));
        }
        register(&mut connection, &record_of_another("session-of-another"));

        let all: Vec<(String, u64)> = [(odd, 2), (SESSION, 3), ("session-2", 0), ("unbound:1", 7), (&long, 0)]
            .map(|(name, seq)| (name.to_owned(), seq))
            .into();
        for limit in [1, 2, 5, 100] {
            assert_eq!(listed(&mut connection, limit), all, "pages of {limit}");
        }
        let page = connection.get(&path_of_gateway()).json();
        let (begun, at) = (first.digest().to_string(), "2026-01-01T00:00:00Z");
        let shown = &page["streams"][1]["first"];
        assert_eq!((&shown["entry_id"], &shown["index"], &shown["at"]), (&json!(begun), &json!(1), &json!(at)));
        for stream in page["streams"].as_array().unwrap() {
            let id = stream["first"]["entry_id"].as_str().unwrap();
            let entry = connection.get(&format!("/v1/entries/{id}")).json();
            assert!(entry["at"].is_string() && stream["at"] == entry["at"], "{stream} and {entry}");
        }
        assert_eq!((&page["gateway"], &page["indexed_to"]), (&json!(GATEWAY), &json!(9)));
        assert_eq!(page["truncated"], false);

        // A stream of which no record is left is not listed; one that has lost its first begins with the next.
        for gone in [audit_record(&decision_json("unbound:1", 7)), first] {
            let id = gone.digest().to_string();
            let flags = ["--reason", "r", "--key", "keys/operator.pem", "--url", service.url()];
            log.tabellion(&[&["entry", "erase", &id], &flags[..]].concat()).must_succeed();
        }
        let left: Vec<(String, u64)> = [(odd, 2), (SESSION, 0), ("session-2", 0), (&long, 0)]
            .map(|(name, seq)| (name.to_owned(), seq))
            .into();
        assert_eq!(listed(&mut connection, 100), left);

        let refused = |connection: &mut Connection, query: &str| {
            let answer = connection.get(&format!("{}?{query}", path_of_gateway()));
            assert_eq!(answer.status, 400, "{query}: {answer:?}");
        };
        for query in ["limit=0", "limit=1001", "limit=x", "before=1"] {
            refused(&mut connection, query);
        }
        assert_eq!(connection.get(&format!("{}?after=%C3%BE", path_of_gateway())).json()["streams"], json!([]));
        service.stop();
        log.must_be_sound();
    }

    fn streams_are_listed_and_shown_on_the_command_line(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let decision = audit_record(&decision_json(SESSION, 0));
        register(&mut connection, &decision);
        register(&mut connection, &audit_record(&outcome_json(SESSION, 2, &decision.digest())));
        register(&mut connection, &audit_record(&audit_json("closed", "session-2", 0)));
        let run = |arguments: &[&str]| {
            log.tabellion(&[&["stream"], arguments, &["--url", service.url()]].concat()).must_succeed().clone()
        };
        let listed = run(&["list", GATEWAY]).stdout;
        assert_eq!(listed.lines().count(), 2, "{listed}");
        let entry = connection.get(&format!("/v1/entries/{}", decision.digest())).json();
        let line = format!("{SESSION}  0  {}  {}", decision.digest(), entry["at"].as_str().unwrap());
        assert_eq!(listed.lines().next(), Some(&*line));
        let cut = run(&["list", GATEWAY, "--limit", "1", "--json"]).json();
        assert_eq!((&cut["streams"][0]["stream"], &cut["more"]), (&json!(SESSION), &json!(true)));
        let rest = run(&["list", GATEWAY, "--after", SESSION, "--json"]).json();
        assert_eq!((&rest["streams"][0]["stream"], &rest["more"]), (&json!("session-2"), &json!(false)));

        let shown = run(&["show", GATEWAY, SESSION]).stdout;
        for said in ["decision  served  read_file", "outcome  executed", "missing  1 to 1", "not closed"] {
            assert!(shown.contains(said), "{said} in {shown}");
        }
        assert!(run(&["show", GATEWAY, "session-2"]).stdout.contains("\nclosed; as of tree size 4"));
        assert_eq!(run(&["show", GATEWAY, SESSION, "--json"]).json()["gaps"], json!([{ "from": 1, "to": 1 }]));
        let unknown = log.tabellion(&["stream", "show", GATEWAY, "nothing", "--url", service.url()]);
        assert_eq!(unknown.code, Some(5), "{unknown:?}");
        service.stop();
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
