//! The planned end of a log (`[log]` of its policy): no entry beyond it, at no process, and operators lift it.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use black_box::{Answer, Connection, Log, Service, on_both_databases};
use rustix::process::Signal;
use scitt::SignedStatement;

/// How long an outcome may take.
const SOON: Duration = Duration::from_secs(30);
/// Every registration is answered with its outcome.
const PATIENT: &str = "answer_within_ms = 20000";
const KEY: &str = "keys/operator.pem";

/// The test policy of this revision with a planned end.
fn policy(revision: u64, end: &str) -> String {
    let toml = testkit::policy_toml().replace("revision = 0", &format!("revision = {revision}"));
    toml.replacen("[[issuer]]", &format!("[log]\n{end}\n\n[[issuer]]"), 1)
}

/// A time this many seconds from now, as a policy names the end of its log.
fn ends_in(seconds: u64) -> String {
    let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds;
    format!("ends = \"{}\"", jiff::Timestamp::from_second(i64::try_from(end).unwrap()).unwrap())
}

fn publish(log: &Log, service: &Service, toml: &str) {
    std::fs::write(log.path("next.toml"), toml).unwrap();
    let publish = ["policy", "publish", "next.toml", "--key", KEY, "--url", service.url()];
    log.tabellion(&publish).must_succeed();
}

#[track_caller]
fn must_be_refused(answer: &Answer, rule: &str, bound: &str) {
    assert_eq!(answer.refusal(), (400, "Rejected".to_owned()), "{answer:?}");
    let problem = answer.problem();
    assert_eq!(problem.get_code(), Some(rule), "{answer:?}");
    assert!(problem.detail.as_ref().is_some_and(|detail| detail.contains(bound)), "{answer:?}");
}

fn outcome(connection: &mut Connection, statement: &SignedStatement) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = connection.get(&format!("/entries/{}", statement.digest()));
        if answer.status != 204 {
            return answer;
        }
        assert!(begun.elapsed() < SOON, "it stays pending");
        sleep(Duration::from_millis(50));
    }
}

fn size(service: &Service) -> u64 {
    let checkpoint = String::from_utf8(service.connection().get("/checkpoint").body).unwrap();
    checkpoint.lines().nth(1).unwrap().parse().unwrap()
}

/// Registers 24 statements from six clients at once; answers with those that got a receipt.
fn rush(log: &Log, service: &Service, bound: &str) -> Vec<SignedStatement> {
    let client = || {
        let mut connection = service.connection();
        let mut registered = Vec::new();
        for _ in 0..4 {
            let statement = log.statement();
            let answer = connection.post(statement.bytes());
            match answer.status {
                201 => registered.push(statement),
                _ => must_be_refused(&answer, "log-full", bound),
            }
        }
        registered
    };
    scope(|scope| {
        let clients: Vec<_> = (0..6).map(|_| scope.spawn(client)).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

on_both_databases! {
    fn a_log_takes_exactly_as_many_entries_as_its_policy_allows_and_more_when_a_later_policy_does(log: Log) {
        log.configure(PATIENT);
        log.set_policy(&policy(0, "max_entries = 8"));
        let service = log.serve();
        let mut connection = service.connection();
        let registered = rush(&log, &service, "8 entries");
        assert_eq!((registered.len(), size(&service)), (7, 8), "entry 0 is the policy");
        let again = connection.post(registered[0].bytes());
        assert_eq!(again.status, 201, "what is registered has its receipt: {again:?}");
        assert_eq!(connection.get("/v1/policy").json()["policy"]["log"]["max_entries"], 8);
        let late = log.statement();
        let cose = [("Content-Type", "application/cose")];
        let tried = connection.send("POST", "/v1/policy/evaluate", &cose, late.bytes()).json();
        assert_eq!((&tried["would_admit"], &tried["violation"]["rule"]), (&false.into(), &"log-full".into()));

        // Operators go on: a hold, and a policy that lifts the bound by as much as it takes itself, and one more.
        let id = registered[0].digest().to_string();
        log.on_admin(&service, &["entry", "hold", &id, "--case", "2026-17", "--key", KEY]).must_succeed();
        must_be_refused(&connection.post(late.bytes()), "log-full", "8 entries");
        publish(&log, &service, &policy(1, "max_entries = 12"));
        assert_eq!(size(&service), 10);
        assert_eq!(rush(&log, &service, "12 entries").len(), 2);
        publish(&log, &service, &testkit::policy_toml().replace("revision = 0", "revision = 2"));
        assert_eq!(connection.post(late.bytes()).status, 201);
        assert_eq!(size(&service), 14);
        service.stop();
        log.must_be_sound();
    }

    fn a_log_takes_no_entry_from_its_end_on(log: Log) {
        log.configure(PATIENT);
        let service = log.serve();
        let mut connection = service.connection();
        let end = ends_in(8);
        publish(&log, &service, &policy(1, &end));
        assert_eq!(connection.post(log.statement().bytes()).status, 201);
        let begun = Instant::now();
        let refused = loop {
            let answer = connection.post(log.statement().bytes());
            if answer.status != 201 {
                break answer;
            }
            assert!(begun.elapsed() < SOON, "the log does not end");
            sleep(Duration::from_millis(100));
        };
        must_be_refused(&refused, "log-ended", &end["ends = \"".len()..end.len() - 1]);
        let before = size(&service);
        publish(&log, &service, &policy(2, &ends_in(3600)));
        assert_eq!(connection.post(log.statement().bytes()).status, 201);
        assert_eq!(size(&service), before + 2);
        service.stop();
        log.must_be_sound();
    }
}

#[test]
fn followers_refuse_what_the_log_has_no_place_for_and_what_waits_gets_its_outcome() {
    let log = Log::postgres();
    log.configure("answer_within_ms = 1");
    log.set_policy(&policy(0, "max_entries = 3"));
    let leader = log.serve();
    let follower = log.serve();
    leader.signal(Signal::STOP);
    let mut connection = follower.connection();
    let waiting: Vec<_> = (0..6).map(|_| log.statement()).collect();
    for statement in &waiting {
        assert_eq!(connection.post(statement.bytes()).status, 202);
    }
    leader.signal(Signal::CONT);
    let outcomes: Vec<_> = waiting.iter().map(|statement| outcome(&mut connection, statement)).collect();
    let (registered, refused): (Vec<_>, Vec<_>) = outcomes.iter().partition(|answer| answer.status == 200);
    assert_eq!((registered.len(), refused.len()), (2, 4));
    for answer in refused {
        assert_eq!(answer.refusal(), (404, "Registration Failed".to_owned()));
        let detail = answer.problem().detail.clone().unwrap();
        assert!(detail.contains("log-full") && detail.contains("3 entries"), "{detail}");
    }
    let begun = Instant::now();
    loop {
        let answer = connection.post(log.statement().bytes());
        if answer.status == 400 {
            break must_be_refused(&answer, "log-full", "3 entries");
        }
        assert!(begun.elapsed() < SOON, "the follower does not hear that the log is full: {answer:?}");
        sleep(Duration::from_millis(100));
    }
    must_be_refused(&leader.connection().post(log.statement().bytes()), "log-full", "3 entries");
    follower.stop();
    leader.stop();
    log.must_be_sound();
}

#[test]
fn a_policy_with_an_end_is_checked_and_tried_without_a_log() {
    let log = Log::sqlite();
    std::fs::write(log.path("note.cose"), log.statement().bytes()).unwrap();
    let end = "max_entries = 5\nends = \"2027-01-01T00:00:00Z\"";
    std::fs::write(log.path("ending.toml"), policy(0, end)).unwrap();
    log.tabellion(&["policy", "validate", "ending.toml"]).must_succeed();
    let tried =
        log.tabellion(&["policy", "test", "ending.toml", "note.cose", "--json"]).must_succeed().json();
    let tried = &tried["results"][0];
    assert_eq!((&tried["max_entries"], &tried["not_after"]), (&5.into(), &"2026-12-31T23:59:59Z".into()));
    let told = log.tabellion(&["policy", "test", "ending.toml", "note.cose"]);
    assert!(told.stdout.contains("while the log has fewer than 5 entries"), "{told}");
    for (wrong, word) in [
        ("max_entries = 0", "log.max_entries"),
        ("max_entries = \"many\"", "log.max_entries"),
        ("ends = \"2027-01-01\"", "log.ends"),
        ("ends = 2027-01-01T00:00:00Z", "in quotes"),
        ("end = \"2027-01-01T00:00:00Z\"", "did you mean `ends`"),
    ] {
        std::fs::write(log.path("wrong.toml"), policy(0, wrong)).unwrap();
        let ran = log.tabellion(&["policy", "validate", "wrong.toml"]);
        assert!(ran.code != Some(0) && ran.stderr.contains(word), "{word}: {ran}");
    }
}
