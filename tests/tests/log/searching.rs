//! Searching, from outside: on both databases, from the process that orders and from one that does not, with the index
//! thrown away while it serves, and after an erasure.

use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{Connection, Log, Ran, Recorder, Service, on_both_databases, until};
use serde_json::{Value, json};

/// How long an index may take to be read again.
const SOON: Duration = Duration::from_secs(20);

fn search(log: &Log, service: &Service, flags: &[&str]) -> Value {
    let command = ["entry", "search", "--json", "--url", service.url()];
    log.tabellion(&[&command[..], flags].concat()).must_succeed().json()
}

fn leaves(found: &Value) -> Vec<u64> {
    found["entries"].as_array().unwrap().iter().map(|entry| entry["index"].as_u64().unwrap()).collect()
}

/// Leaves of all pages.
fn all(connection: &mut Connection, query: &str) -> Vec<u64> {
    let mut path = format!("/v1/entries?{query}");
    let (mut found, begun) = (Vec::new(), Instant::now());
    loop {
        let answer = connection.get(&path);
        if answer.status == 503 {
            // Nothing behind the last page is indexed yet.
            assert!(begun.elapsed() < SOON, "{answer:?}");
            continue;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        let page: Value = serde_json::from_slice(&answer.body).unwrap();
        found.extend(leaves(&page));
        let Some(link) = answer.header("link") else { return found };
        let (_, next) = link.split_once("/v1/").unwrap();
        path = format!("/v1/{}", next.split_once('>').unwrap().0);
    }
}

fn reindex(log: &Log, service: &Service) -> Ran {
    log.on_admin(service, &["log", "reindex"])
}

on_both_databases! {
    fn whoever_registered_finds_it_and_finds_it_again_after_the_index_was_dropped(log: Log) {
        let (service, recorder) = (log.serve(), Recorder::new());
        let mut connection = service.connection();
        for n in 0..30 {
            let subject = if n % 3 == 0 { "third" } else { "other" };
            recorder.register(&mut connection, &testkit::opaque(subject, &json!({ "n": n })));
            let newest = all(&mut connection, &format!("subject={subject}&limit=7"));
            assert_eq!(newest.last(), Some(&(n + 1)), "who registered before he asks finds it");
        }
        let thirds: Vec<u64> = (0..30).filter(|n| n % 3 == 0).map(|n| n + 1).collect();
        let found = search(&log, &service, &["--subject", "third", "--issuer", testkit::ISSUER, "--limit", "1000"]);
        assert_eq!((leaves(&found), &found["indexed_to"], &found["more"]), (thirds.clone(), &json!(31), &json!(false)));
        let few = search(&log, &service, &["--subject", "third", "--limit", "3"]);
        assert_eq!((leaves(&few), &few["more"]), (thirds[..3].to_vec(), &json!(true)));
        let both = search(&log, &service, &["--subject", "third", "--content-type", "text/plain"]);
        assert_eq!(leaves(&both), [0; 0]);

        reindex(&log, &service).must_succeed();
        until(SOON, || "the index was not read again", || all(&mut connection, "subject=third") == thirds);
        assert_eq!(all(&mut connection, "subject=other").len(), 20);
        recorder.verdict(&log, service);
    }

    fn an_entry_that_was_damaged_keeps_no_other_from_being_found(log: Log) {
        let service = log.serve();
        let mut connection = service.connection();
        let statements: Vec<_> = (0..6).map(|n| testkit::opaque("thing", &json!({ "n": n }))).collect();
        for statement in &statements {
            assert_eq!(connection.post(statement.bytes()).status, 201);
        }
        assert_eq!(all(&mut connection, "subject=thing"), [1, 2, 3, 4, 5, 6]);
        service.stop();
        log.database().flip_a_bit_of(&statements[2]);
        let service = log.serve();
        let mut connection = service.connection();
        reindex(&log, &service).must_succeed();
        let without_the_damaged = [1, 2, 4, 5, 6];
        until(SOON, || "the damaged entry is found", || all(&mut connection, "subject=thing") == without_the_damaged);
        assert_eq!(connection.post(log.statement().bytes()).status, 201);
        assert_eq!(all(&mut connection, "subject=thing-1"), [7]);
    }

    fn the_lookup_index_is_read_on_after_a_crash(log: Log) {
        let (service, recorder) = (log.serve(), Recorder::new());
        let mut connection = service.connection();
        for n in 0..40 {
            recorder.register(&mut connection, &testkit::opaque("thing", &json!({ "n": n })));
        }
        service.kill();
        let service = log.serve();
        assert_eq!(all(&mut service.connection(), "subject=thing"), (1..=40).collect::<Vec<u64>>());
        recorder.verdict(&log, service);
    }
}

#[test]
fn a_process_that_does_not_order_searches_as_well() {
    let log = Log::postgres();
    let recorder = Recorder::new();
    let (leader, follower) = (log.serve(), log.serve());
    let mut connection = leader.connection();
    for n in 0..10 {
        recorder.register(&mut connection, &testkit::opaque("thing", &json!({ "n": n })));
    }
    let begun = Instant::now();
    let mut connection = follower.connection();
    while all(&mut connection, "subject=thing") != (1..=10).collect::<Vec<u64>>() {
        assert!(begun.elapsed() < SOON, "the follower does not find what the leader registered");
        sleep(Duration::from_millis(50));
    }
    reindex(&log, &follower).must_succeed();
    while all(&mut connection, "subject=thing").len() != 10 {
        assert!(begun.elapsed() < SOON, "the leader does not read what the follower dropped");
    }
    follower.kill();
    recorder.verdict(&log, leader);
}
