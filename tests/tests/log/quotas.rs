//! An issuer's quota is that of the log: several processes on one database count together.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use black_box::{Connection, Log, until};
use rustix::process::Signal;
use scitt::{SignedStatement, StatementBuilder};

/// Two a second, eight at once: windows of four seconds that hold eight, so few that a slow machine reaches the limit.
const RATE: &str = "issuer_rate = 2";
const WINDOW: u64 = 4;
const LIMIT: usize = 8;
/// One a second for one issuer: four in a window.
const NAMED_LIMIT: usize = 4;

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

#[test]
fn an_issuer_that_is_named_keeps_its_own_rate_at_all_processes_and_the_others_keep_theirs() {
    let log = Log::postgres();
    let named = format!("issuer_rates = {{ \"{}\" = 1 }}", testkit::ISSUER);
    log.configure(&format!("{RATE}\n{named}"));
    let (leader, follower) = (log.serve(), log.serve());
    let mut doors = [leader.connection(), follower.connection()];
    wait_for_a_window();
    assert_eq!(admitted_in_this_window(&log, &mut doors), NAMED_LIMIT, "together, not each");
    wait_for_a_window();
    (0..LIMIT).for_each(|n| assert!(matches!(doors[0].post(another(n).bytes()).status, 201 | 202), "{n}"));
    let over = doors[1].post(another(LIMIT).bytes());
    assert_eq!(over.status, 429, "{over:?}");
    assert!(over.problem().detail.unwrap().contains("2 requests per second"), "{over:?}");
    let limits = leader.connection().get("/v1/limits").json();
    assert_eq!(limits["issuer"]["requests"], 2, "{limits}");
    assert!(!limits.to_string().contains(testkit::ISSUER), "{limits}");
    leader.stop();
    follower.stop();
}

#[test]
fn a_reload_gives_an_issuer_another_rate() {
    let log = Log::sqlite();
    let service = log.serve();
    let mut connection = service.connection();
    for rate in [2, 3] {
        log.configure(&format!("issuer_rates = {{ \"{}\" = {rate} }}", testkit::ISSUER));
        service.signal(Signal::HUP);
        until(
            Duration::from_secs(30),
            || format!("the rate is not {rate}"),
            || turned_away(&log, &mut connection).contains(&format!("{rate} requests per second")),
        );
    }
    service.stop();
}

/// What the answer says that turns an issuer away; nothing if it is never turned away.
fn turned_away(log: &Log, door: &mut Connection) -> String {
    let answers = (0..2 * LIMIT).map(|_| door.post(log.statement().bytes()));
    let over = answers.into_iter().find(|answer| answer.status == 429);
    over.and_then(|over| over.problem().detail.clone()).unwrap_or_default()
}

/// A statement of an issuer whose rate is that of all.
fn another(n: usize) -> SignedStatement {
    let statement = StatementBuilder::new("{}").content_type("application/json").kid(testkit::KID.as_bytes());
    statement.iss(testkit::ISSUER_384).sub(&format!("thing-{n}")).sign(&testkit::es384()).unwrap()
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
        if now().as_secs() / WINDOW != window {
            break; // It may count for the next window.
        }
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
