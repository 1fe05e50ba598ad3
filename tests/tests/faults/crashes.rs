//! Processes that die: at every named point, at random, and at every interesting size of the tree.
//!
//! R4, R5 and R20 need a storage that fails on request and are tests of `sequencer` and `store-postgres`.

use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{Load, Log, Recorder, on_both_databases, resolve_what_was_left_open, seed};

/// Crashes at each point, in one test.
const ROUNDS: u64 = 10;
/// Times that a process is killed at random.
const RESTARTS: u32 = 50;
/// Crashes under load that are followed by five more in the starts after them.
const RECOVERIES: u32 = 4;
/// How long a process may go on until it reaches its crash point.
const LONG_ENOUGH: Duration = Duration::from_secs(20);

/// Dies at a point again and again, under load; then everything that was promised must be there.
fn survives_crashes_at(point: &str, log: &Log) {
    seed();
    let recorder = Recorder::new();
    let load = Load { log, recorder: &recorder, writers: 4 };
    log.serve().stop(); // The policy is entry 0.
    let mut crashes = 0;
    for round in 0..ROUNDS {
        // Late enough that something was promised, at another place in the batches each time.
        let Ok(service) = log.serve_until(point, 1 + round * round / 4) else {
            crashes += 1; // While it started: that is where some points are.
            continue;
        };
        load.on(&service, || {
            let begun = Instant::now();
            while service.runs() && begun.elapsed() < LONG_ENOUGH {
                sleep(Duration::from_millis(1));
            }
        });
        assert!(!service.runs(), "{point} was not reached in round {round}: {:?}", recorder.answers());
        crashes += 1;
        let service = log.serve();
        resolve_what_was_left_open(&recorder, &service);
        service.kill();
    }
    assert_eq!(crashes, ROUNDS);
    load.on(&log.serve(), || sleep(Duration::from_millis(200)));
    recorder.verdict(log, log.serve());
}

on_both_databases! {
    fn r1_a_crash_before_the_commit_keeps_every_promise(log: Log) { survives_crashes_at("before-commit", &log); }
    fn r1_a_crash_after_the_commit_keeps_every_promise(log: Log) { survives_crashes_at("after-commit", &log); }
    fn r1_a_crash_before_the_pin_keeps_every_promise(log: Log) { survives_crashes_at("before-pin", &log); }
    fn r1_a_crash_before_signing_keeps_every_promise(log: Log) { survives_crashes_at("before-sign", &log); }
    fn r1_a_crash_after_signing_keeps_every_promise(log: Log) { survives_crashes_at("after-sign", &log); }
    fn r1_a_crash_before_the_answer_keeps_every_promise(log: Log) { survives_crashes_at("before-answer", &log); }
    fn r1_a_crash_before_signatures_are_kept_keeps_every_promise(log: Log) { survives_crashes_at("before-keep", &log); }
    fn r1_a_crash_before_taking_over_keeps_every_promise(log: Log) { starts_after_crashes_at("before-take-over", &log); }
    fn r1_a_crash_after_taking_over_keeps_every_promise(log: Log) { starts_after_crashes_at("after-take-over", &log); }

    fn r1_a_crash_before_the_inbox_keeps_every_promise(log: Log) {
        log.configure("answer_within_ms = 1");
        survives_crashes_at("before-enqueue", &log);
    }

    fn r2_fifty_kills_at_random_times_lose_nothing(log: Log) {
        seed();
        let recorder = Recorder::new();
        let load = Load { log: &log, recorder: &recorder, writers: 4 };
        let mut restarts = 0;
        // More of them where a busy machine registers little between two.
        while restarts < RESTARTS || (recorder.registered() <= 100 && restarts < 4 * RESTARTS) {
            let service = log.serve();
            load.on(&service, || sleep(Duration::from_millis(fastrand::u64(0..150))));
            service.kill();
            restarts += 1;
        }
        recorder.verdict(&log, log.serve());
        assert!(recorder.registered() > 100, "{:?}", recorder.answers());
    }

    fn r3_a_start_that_is_killed_again_and_again_keeps_every_promise(log: Log) {
        seed();
        let recorder = Recorder::new();
        let load = Load { log: &log, recorder: &recorder, writers: 4 };
        let mut killed_in_the_start = 0;
        for _ in 0..RECOVERIES {
            let service = log.serve();
            load.on(&service, || sleep(Duration::from_millis(100)));
            service.kill();
            for point in ["before-take-over", "after-take-over", "in-pin", "before-pin", "before-sign"] {
                match log.serve_until(point, 1) {
                    Ok(service) => service.kill(), // Nothing was left to sign or to pin.
                    Err(_) => killed_in_the_start += 1,
                }
            }
        }
        assert!(killed_in_the_start >= 2 * RECOVERIES, "{killed_in_the_start}");
        recorder.verdict(&log, log.serve());
    }

    fn r61_restarts_at_every_edge_of_the_tree_change_nothing(log: Log) {
        let recorder = Recorder::new();
        let mut service = log.serve();
        let mut size = 1; // The policy.
        for edge in edges() {
            let mut connection = service.connection();
            while size < edge {
                recorder.register(&mut connection, &log.statement());
                size += 1;
            }
            service.kill();
            service = log.serve();
            assert_eq!(recorder.must_have_kept_its_word(&service), edge);
        }
        recorder.verdict(&log, service);
    }
}

/// Points that are passed at start: the process dies before it serves, as often as one likes.
fn starts_after_crashes_at(point: &str, log: &Log) {
    let recorder = Recorder::new();
    let load = Load { log, recorder: &recorder, writers: 4 };
    for round in 0..ROUNDS {
        let crashed = log.serve_until(point, 1);
        assert!(crashed.is_err_and(|ran| ran.code.is_none()), "{point} was not reached in round {round}");
        if round % 3 == 0 {
            let service = log.serve();
            load.on(&service, || sleep(Duration::from_millis(50)));
            service.kill();
        }
    }
    recorder.verdict(log, log.serve());
}

/// 1, 2, and one below, at and above each power of two up to the edge of a tile.
fn edges() -> Vec<u64> {
    let around = (1..=8).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]);
    let mut edges: Vec<u64> = around.collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}
