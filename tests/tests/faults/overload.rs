//! More than the service can take: it says so, keeps what it promised, and is itself again afterwards.

use std::thread::{scope, sleep};
use std::time::Duration;

use black_box::{Load, Log, Outcome, Recorder, on_both_databases};

/// Clients at once: many times what the small queue holds.
const CLIENTS: usize = 64;
/// How long.
const FLOOD: Duration = Duration::from_secs(4);
/// What the process may hold at the end: bodies, queue and tile cache together are bounded far below.
const MEMORY: u64 = 512 << 20;

on_both_databases! {
    fn r54_overload_is_answered_with_503_or_202_and_nothing_promised_is_lost(log: Log) {
        log.configure("queue_entries = 16");
        let recorder = Recorder::new();
        let service = log.serve();
        // A little first: connections to a database are slow to make.
        Load { log: &log, recorder: &recorder, writers: 8 }.on(&service, || sleep(FLOOD / 4));
        Load { log: &log, recorder: &recorder, writers: CLIENTS }.on(&service, || sleep(FLOOD));
        let answers = recorder.answers();
        assert!(answers.keys().all(|status| matches!(status, 200..=204 | 429 | 503)), "{answers:?}");
        assert!(answers.contains_key(&503), "the queue was never full: {answers:?}");
        assert!(answers[&201] > 100, "work went on: {answers:?}");
        assert!(service.memory() < MEMORY, "{} bytes", service.memory());
        let mut connection = service.connection();
        let next = recorder.register(&mut connection, &log.statement());
        assert_eq!(next, Outcome::Registered, "the first one after the flood is taken");
        recorder.verdict(&log, service);
    }
}

#[test]
fn r54_a_client_beyond_its_rate_gets_429_and_others_are_served() {
    let log = Log::sqlite();
    log.configure("write_rate = 5\nwrite_burst = 10");
    let recorder = Recorder::new();
    let service = log.serve();
    let mut connection = service.connection();
    let mut turned_away = 0;
    for _ in 0..30 {
        match recorder.register(&mut connection, &log.statement()) {
            Outcome::TurnedAway => turned_away += 1,
            outcome => assert_eq!(outcome, Outcome::Registered),
        }
    }
    assert!(turned_away >= 10, "{:?}", recorder.answers());
    let answers = recorder.answers();
    assert_eq!(answers.keys().copied().collect::<Vec<_>>(), [201, 429], "{answers:?}");
    let refused =
        (0..100).map(|_| connection.post(log.statement().bytes())).find(|answer| answer.status == 429);
    let refused = refused.unwrap();
    assert_eq!(refused.refusal(), (429, "Too Many Requests".to_owned()));
    assert_eq!(refused.problem().detail.as_deref(), Some("Only 5 requests per second are allowed."));
    assert_eq!(connection.get("/v1/entries").status, 200, "reads are counted apart");
    sleep(Duration::from_secs(1));
    assert_eq!(recorder.register(&mut connection, &log.statement()), Outcome::Registered);
}

#[test]
fn connections_that_never_ask_anything_do_not_keep_others_out() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    let idle: Vec<_> = (0..500).map(|_| connection.connect().unwrap()).collect();
    scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(service.connection().post(log.statement().bytes()).status, 201));
        }
    });
    drop(idle);
    service.stop();
}
