//! An issuer's quota is that of the log: several processes on one database count together.
#![allow(clippy::unwrap_used)]

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use black_box::{Connection, Log};

/// Five a second, twenty at once: windows of four seconds that hold twenty.
const RATE: &str = "issuer_rate = 5";
const WINDOW: u64 = 4;
const LIMIT: usize = 20;

#[test]
fn two_processes_on_one_postgresql_database_admit_one_quota_together() {
    let log = Log::postgres();
    log.configure(RATE);
    let (leader, follower) = (log.serve(), log.serve());
    let mut doors = [leader.connection(), follower.connection()];
    wait_for_a_window();
    let admitted = admitted_in_this_window(&log, &mut doors);
    assert_eq!(admitted, LIMIT, "together, not each");
    wait_for_a_window();
    assert!(admitted_in_this_window(&log, &mut doors) > 0, "the next window begins anew");
    leader.stop();
    follower.stop();
    log.must_be_sound();
}

#[test]
fn one_process_on_sqlite_keeps_the_quota() {
    let log = Log::sqlite();
    log.configure(RATE);
    let service = log.serve();
    wait_for_a_window();
    assert_eq!(admitted_in_this_window(&log, &mut [service.connection()]), LIMIT);
    service.stop();
}

/// Registers at each door in turn until the window is nearly over; answers how many statements were let in.
fn admitted_in_this_window(log: &Log, doors: &mut [Connection]) -> usize {
    let window = now().as_secs() / WINDOW;
    let (mut admitted, mut turned_away) = (0, 0);
    for n in 0.. {
        let soon = now() + Duration::from_millis(400);
        if soon.as_secs() / WINDOW != window || turned_away > 2 * LIMIT {
            break;
        }
        let door = n % doors.len();
        let answer = doors[door].post(log.statement().bytes());
        match answer.status {
            201 | 202 => admitted += 1,
            429 => {
                let wait: u64 = answer.must_have("retry-after").parse().unwrap();
                assert!((1..=WINDOW).contains(&wait), "{wait} s");
                turned_away += 1;
            }
            other => panic!("{other}: {answer:?}"),
        }
    }
    assert!(turned_away > 0, "{admitted} registrations took the whole window");
    admitted
}

fn wait_for_a_window() {
    let window = now().as_secs() / WINDOW;
    while now().as_secs() / WINDOW == window {
        sleep(Duration::from_millis(5));
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}
