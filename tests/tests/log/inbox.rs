//! Accepted statements that are not in the log yet: each gets an outcome, their number is bounded, and an operator
//! sees and refuses them.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use black_box::{Answer, Connection, Log, Outcome, Ran, Recorder, Service, on_a_terminal, sql, until};
use rustix::process::Signal;
use scitt::{SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};

/// The label of the claim `exp`.
const EXP: i64 = 4;
/// How long an outcome may take once the log can register again.
const SOON: Duration = Duration::from_secs(30);

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn builder(iss: &str, sub: &str) -> StatementBuilder {
    StatementBuilder::new("{}")
        .content_type("application/json")
        .kid(testkit::KID.as_bytes())
        .iss(iss)
        .sub(sub)
}

fn expiring(sub: &str, at: i64) -> SignedStatement {
    builder(testkit::ISSUER, sub).claim(EXP, at.into()).sign(&testkit::es256()).unwrap()
}

fn of(iss: &str, signer: &dyn Signer, sub: &str) -> SignedStatement {
    builder(iss, sub).sign(signer).unwrap()
}

fn resolve(connection: &mut Connection, statement: &SignedStatement) -> Answer {
    connection.get(&format!("/entries/{}", statement.digest()))
}

fn outcome(connection: &mut Connection, statement: &SignedStatement) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = resolve(connection, statement);
        if answer.status != 204 {
            return answer;
        }
        assert!(begun.elapsed() < SOON, "it stays pending");
        sleep(Duration::from_millis(50));
    }
}

fn inbox(log: &Log, service: &Service, arguments: &[&str]) -> Ran {
    log.on_admin(service, &[&["inbox"], arguments].concat())
}

fn items(log: &Log, service: &Service) -> Vec<Value> {
    inbox(log, service, &["list"]).must_succeed().json()["items"].as_array().unwrap().clone()
}

#[test]
fn r25_r36_a_statement_that_expires_while_the_head_row_is_locked_is_refused_and_says_why() {
    let log = Log::postgres();
    log.configure("answer_within_ms = 1000");
    let service = log.serve();
    let mut connection = service.connection();
    let url = log.database().url();
    scope(|scope| {
        let lock = "BEGIN; SELECT 1 FROM log FOR UPDATE; SELECT pg_sleep(6); COMMIT";
        scope.spawn(|| sql(&url, lock));
        let begun = Instant::now();
        let held = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(6)%' AND wait_event = 'PgSleep'";
        while sql(&url, held).trim() != "1" {
            assert!(begun.elapsed() < SOON, "the row is not locked");
            sleep(Duration::from_millis(20));
        }
        // One commit waits for the row; what comes after it waits for the next batch.
        let first = log.statement();
        assert_eq!(connection.post(first.bytes()).status, 202);
        // Before the row is free.
        let closing = expiring("closing", now() + 3);
        assert_eq!(connection.post(closing.bytes()).status, 202);
        assert_eq!(resolve(&mut connection, &closing).status, 204);
        let refused = outcome(&mut connection, &closing);
        assert_eq!(refused.refusal(), (404, "Registration Failed".to_owned()));
        assert!(refused.problem().detail.unwrap().contains("exp"), "{refused:?}");
        assert_eq!(outcome(&mut connection, &first).status, 200);
    });
    let metrics = String::from_utf8(service.admin().get("/metrics").body).unwrap();
    assert!(metrics.contains("tabellion_inbox_refused_total 1\n"), "{metrics}");
    service.stop();
    log.must_be_sound();
}

#[test]
fn r57_an_issuer_fills_its_share_of_the_inbox_and_an_operator_refuses_what_is_in_it() {
    let log = Log::postgres();
    log.configure("inbox_issuer_entries = 3\ninbox_entries = 5\nanswer_within_ms = 1");
    let recorder = Recorder::new();
    let leader = log.serve();
    let follower = log.serve();
    // Rows of registered statements count until the leader has removed them.
    until(
        SOON,
        || "the inbox is not emptied",
        || sql(&log.database().url(), "SELECT count(*) FROM inbox").trim() == "0",
    );
    leader.signal(Signal::STOP);
    let mut connection = follower.connection();
    let greedy: Vec<_> = (0..3).map(|_| log.statement()).collect();
    for statement in &greedy[1..] {
        assert_eq!(recorder.register(&mut connection, statement), Outcome::Accepted);
    }
    assert_eq!(connection.post(greedy[0].bytes()).status, 202);
    let full = connection.post(log.statement().bytes());
    assert_eq!(full.refusal(), (503, "Service Unavailable".to_owned()));
    assert!(full.problem().detail.unwrap().contains("of this issuer"), "{full:?}");
    full.must_say_when_to_come_back();
    let honest = |sub| of(testkit::ISSUER_384, &testkit::es384(), sub);
    let (placed, last) = (honest("placed"), honest("last"));
    for statement in [&placed, &last] {
        assert_eq!(recorder.register(&mut connection, statement), Outcome::Accepted);
    }
    let full = connection.post(honest("more").bytes());
    assert!(full.problem().detail.unwrap().starts_with("Too many statements are accepted"), "{full:?}");

    let listed = items(&log, &follower);
    let ids: Vec<_> = listed.iter().map(|item| item["entry_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!(listed[4]["issuer"], testkit::ISSUER_384);
    assert!(
        listed.iter().all(|item| item["state"] == "waiting" && item["age_seconds"].is_u64()),
        "{listed:?}"
    );
    let id = greedy[0].digest().to_string();
    assert!(ids.contains(&id));
    let url = format!("http://{}", follower.admin_url());
    let mut list = log.command();
    list.args(["inbox", "list", "--admin-url", &url, "--token-file", "operator.token"]).env("NO_COLOR", "1");
    let shown = on_a_terminal(&list);
    assert!(shown.contains("state") && shown.contains(&format!("{}…", &id[..12])), "{shown}");
    assert!(!shown.contains(&id), "{shown}");
    let refused = inbox(&log, &follower, &["refuse", &id, "--reason", "sent by mistake"]);
    assert_eq!(refused.must_succeed().json()["entry_id"], *id);
    let again = inbox(&log, &follower, &["refuse", &id, "--reason", "again"]);
    assert_eq!(again.code, Some(6), "{again}");
    assert!(again.stderr.contains("inbox-decided"), "{again}");
    let unknown = inbox(&log, &follower, &["refuse", &"0".repeat(64), "--reason", "why"]);
    assert_eq!(unknown.code, Some(5), "{unknown}");
    assert!(unknown.stderr.contains("not-in-inbox"), "{unknown}");

    leader.signal(Signal::CONT);
    for statement in [&greedy[1], &greedy[2], &placed, &last] {
        assert_eq!(outcome(&mut connection, statement).status, 200);
    }
    let told = outcome(&mut connection, &greedy[0]);
    assert_eq!(told.refusal(), (404, "Registration Failed".to_owned()));
    assert_eq!(told.problem().detail.as_deref(), Some("refused by the operator: sent by mistake"));
    assert_eq!(json!(items(&log, &leader)), json!([]));
    follower.kill();
    recorder.verdict(&log, leader);
}
