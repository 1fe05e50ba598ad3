//! A session as anyone sees it: what the log holds of it, whatever its type, and what is linked with it.

use black_box::{Answer, Connection, on_both_databases};
use scitt::SignedStatement;
use serde_json::{Value, json};
use testkit::{
    GATEWAY, SESSION, aer_json, aer_statement, audit_record, conversation_json, conversation_of,
    decision_json, gateway, outcome_json, recorder, verdict, verdict_json,
};

/// What the verification receipts of the test kit verified.
const OUTPUT: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn register(connection: &mut Connection, statement: &SignedStatement) {
    let answer = connection.post(statement.bytes());
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// The conversation of `session-1`, or of another one.
fn conversation(n: u64) -> SignedStatement {
    let payload = conversation_json(n).to_string().into_bytes();
    conversation_of(payload, &format!("session-{n}")).sign(&recorder()).unwrap()
}

/// An execution receipt of the session for a call whose input somebody verified.
fn execution() -> SignedStatement {
    let mut receipt = aer_json(1);
    receipt["session"]["session_id"] = SESSION.into();
    receipt["action"]["input_hash"] = OUTPUT.into();
    aer_statement(receipt).sign(&gateway()).unwrap()
}

/// Another one, by its hash.
fn redacted_execution() -> SignedStatement {
    let mut receipt = aer_json(2);
    receipt["session"]["session_id"] = SESSION.into();
    aer_statement(receipt).about_session().redacted().sign(&gateway()).unwrap()
}

/// Leaf 1 to 3 and 5 to 7 are of the session; 4 is of another one, 8 is of none and verified what 6 speaks of, 9 is of none.
fn register_a_session(connection: &mut Connection) -> Vec<SignedStatement> {
    let decision = audit_record(&decision_json(SESSION, 0));
    let outcome = audit_record(&outcome_json(SESSION, 1, &decision.digest()));
    let statements = vec![
        conversation(1),
        decision,
        outcome,
        conversation(2),
        verdict(&verdict_json()),
        execution(),
        redacted_execution(),
        testkit::vrf(1),
        testkit::opaque(SESSION, &json!({ "n": 1 })),
    ];
    statements.iter().for_each(|statement| register(connection, statement));
    statements
}

fn leaves(entries: &Value) -> Vec<u64> {
    entries.as_array().unwrap().iter().map(|entry| entry["index"].as_u64().unwrap()).collect()
}

fn session(connection: &mut Connection, query: &str) -> Answer {
    let answer = connection.get(&format!("/v1/sessions/{SESSION}?{query}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

on_both_databases! {
    fn a_session_is_one_document_over_all_types(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        assert_eq!(connection.get(&format!("/v1/sessions/{SESSION}")).status, 404);
        let statements = register_a_session(&mut connection);

        let answer = session(&mut connection, "");
        assert_eq!(answer.header("link"), None);
        let seen = answer.json();
        assert_eq!(leaves(&seen["entries"]), [1, 2, 3, 5, 6, 7], "{seen}");
        assert_eq!(
            seen["content_types"],
            json!({
                "application/agent-conversation": 1,
                "application/vap-audit+json": 2,
                "application/vap-verdict+json": 1,
                "application/aer+json": 2,
            })
        );
        assert_eq!((&seen["session"], &seen["counting"]), (&json!(SESSION), &json!(false)));
        assert_eq!(seen["indexed_to"], 10);
        let decided = &seen["entries"][1];
        assert_eq!(decided["entry_id"], statements[1].digest().to_string());
        assert_eq!((&decided["iss"], &decided["sub"]), (&json!(GATEWAY), &json!(SESSION)));
        assert_eq!((&decided["facts"]["kind"], &decided["facts"]["seq"]), (&json!("decision"), &json!(0)));
        for entry in seen["entries"].as_array().unwrap() {
            let alone = connection.get(&format!("/v1/entries/{}", entry["entry_id"].as_str().unwrap()));
            assert_eq!(entry, &alone.json(), "with its time, as it is shown alone");
        }
        assert_eq!((leaves(&seen["receipts"]), &seen["more_receipts"]), (vec![8], &json!(false)));
        assert_eq!(seen["receipts"][0]["facts"]["output_hash"], OUTPUT);
        let stream = &seen["streams"][0];
        assert_eq!((&stream["gateway"], &stream["stream"]), (&json!(GATEWAY), &json!(SESSION)));
        let (_, path) = stream["url"].as_str().unwrap().split_once("/v1/").unwrap();
        assert_eq!(connection.get(&format!("/v1/{path}")).json()["gaps"], json!([]));
        assert_eq!(seen["streams"].as_array().unwrap().len(), 1);
        service.stop();
        log.must_be_sound();
    }

    fn pages_of_a_session_follow_each_other_and_each_shows_what_is_linked_with_it(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        register_a_session(&mut connection);
        let mut query = "limit=4".to_owned();
        let mut pages = Vec::new();
        loop {
            let answer = session(&mut connection, &query);
            let page = answer.json();
            assert_eq!(page["content_types"]["application/aer+json"], 2, "of all pages");
            let linked = page["streams"].as_array().unwrap().len();
            pages.push((leaves(&page["entries"]), leaves(&page["receipts"]), linked));
            let Some(link) = answer.header("link") else { break };
            query = link.split_once('?').unwrap().1.split_once('>').unwrap().0.to_owned();
        }
        assert_eq!(pages, [(vec![1, 2, 3, 5], vec![], 1), (vec![6, 7], vec![8], 0)]);
        let path = format!("/v1/sessions/{SESSION}");
        for query in ["limit=0", "limit=1001", "after=-1", "session=x"] {
            assert_eq!(connection.get(&format!("{path}?{query}")).status, 400, "{query}");
        }
        assert_eq!(connection.get("/v1/sessions/none").status, 404);
        service.stop();
    }

    fn a_session_is_shown_on_the_command_line(log: Log) {
        let service = log.serve();
        register_a_session(&mut service.connection());
        let run = |arguments: &[&str]| {
            let command = ["session", "show", SESSION, "--url", service.url()];
            log.tabellion(&[&command[..], arguments].concat()).must_succeed().clone()
        };
        let shown = run(&[]).stdout;
        assert_eq!(shown.lines().count(), 6 + 1 + 1 + 4 + 1, "entries, receipts, counts, streams: {shown}");
        assert!(shown.contains("       2  application/aer+json"), "{shown}");
        let cut = run(&["--limit", "2", "--after", "1", "--json"]).json();
        assert_eq!((leaves(&cut["entries"]), &cut["more"]), (vec![2, 3], &json!(true)));
        let unknown = log.tabellion(&["session", "show", "nothing", "--url", service.url()]);
        assert_eq!(unknown.code, Some(5), "{unknown:?}");
        service.stop();
    }
}
