//! Two processes on one log, started by mistake or on purpose: one of them orders, and nobody forks.

use std::thread::sleep;
use std::time::Duration;

use black_box::{Connection, Database, Load, Log, Outcome, Recorder, Service, sql, until};
use rustix::process::Signal;

/// How long a follower may take to lead once the leader is gone.
const TAKE_OVER: Duration = Duration::from_secs(20);
/// How long fifty registrations may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn r30_a_second_process_on_one_sqlite_file_refuses_to_start() {
    let log = Log::sqlite();
    let recorder = Recorder::new();
    let first = log.serve();
    let second = log.serve_in_vain();
    assert_eq!(second.code, Some(1), "{second}");
    assert!(second.stderr.contains("log.db"), "names the file: {second}");
    assert_eq!(recorder.register(&mut first.connection(), &log.statement()), Outcome::Registered);
    first.kill();
    recorder.verdict(&log, log.serve());
}

#[test]
fn r30_a_second_process_on_one_postgresql_database_accepts_through_the_inbox_and_takes_over() {
    let log = Log::postgres();
    let recorder = Recorder::new();
    let leader = log.serve();
    let follower = log.serve();
    assert!(leads(&leader) && !leads(&follower));
    let load = Load { log: &log, recorder: &recorder, writers: 6 };
    load.on_several(&[&leader, &follower], || expect_registered(&recorder, 50));
    let mut connection = follower.connection();
    let outcome = recorder.register(&mut connection, &log.statement());
    assert!(matches!(outcome, Outcome::Registered | Outcome::Accepted), "{outcome:?}");
    load.on_several(&[&leader, &follower], || {
        sleep(Duration::from_millis(300));
        leader.signal(Signal::KILL);
        expect_to_lead(&follower);
    });
    leader.kill();
    assert_eq!(recorder.register(&mut connection, &log.statement()), Outcome::Registered);
    recorder.verdict(&log, follower);
}

#[test]
fn r31_a_paused_leader_that_wakes_after_a_take_over_does_not_fork() {
    let log = Log::postgres();
    let recorder = Recorder::new();
    let first = log.serve();
    let load = Load { log: &log, recorder: &recorder, writers: 4 };
    let second = load.on(&first, || {
        sleep(Duration::from_millis(300));
        let second = log.serve();
        first.signal(Signal::STOP);
        second
    });
    // The paused process keeps its connections: only the server can end the lease, as it does when a network is cut.
    load.on(&second, || {
        sleep(Duration::from_millis(300));
        end_sessions_of(&first, log.database());
        expect_to_lead(&second);
        sleep(Duration::from_millis(500));
    });
    first.signal(Signal::CONT);
    load.on_several(&[&first, &second], || sleep(Duration::from_secs(1)));
    assert!(leads(&second));
    recorder.must_have_kept_its_word(&first);
    first.stop();
    recorder.verdict(&log, second);
}

#[test]
fn r30_what_a_follower_accepted_while_nobody_led_is_registered_by_whoever_leads_next() {
    let log = Log::postgres();
    log.configure("answer_within_ms = 1000");
    let recorder = Recorder::new();
    let leader = log.serve();
    let follower = log.serve();
    leader.signal(Signal::STOP);
    let mut connection = follower.connection();
    let statement = log.statement();
    assert_eq!(recorder.register(&mut connection, &statement), Outcome::Accepted);
    let running = recorder.resolve(&mut connection, statement.digest()).unwrap();
    assert_eq!((running.status, running.header("cache-control")), (204, Some("no-store")));
    assert_eq!(recorder.register(&mut connection, &statement), Outcome::Accepted, "and again");
    leader.signal(Signal::CONT);
    follower.kill();
    recorder.verdict(&log, leader);
}

/// The fence epoch is a gauge that only a leader sets.
fn leads(service: &Service) -> bool {
    let metrics = String::from_utf8(service.admin().get("/metrics").body).unwrap();
    let epoch = metrics.lines().find_map(|line| line.strip_prefix("tabellion_storage_fence_epoch "));
    epoch.is_some_and(|epoch| epoch.trim() != "0")
}

fn expect_registered(recorder: &Recorder, count: usize) {
    until(PATIENCE, || format!("{:?}", recorder.answers()), || recorder.registered() >= count);
}

fn expect_to_lead(service: &Service) {
    until(TAKE_OVER, || "it does not take over", || leads(service));
}

/// Ends every session that a paused process holds: those that were busy before it was paused or hold the lease.
fn end_sessions_of(service: &Service, database: &Database) {
    let ports: Vec<String> = local_ports(service).iter().map(u16::to_string).collect();
    assert!(!ports.is_empty());
    let list = ports.join(",");
    sql(
        &database.url(),
        &format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_port IN ({list})"),
    );
}

/// The local ports of a process's TCP connections.
fn local_ports(service: &Service) -> Vec<u16> {
    let pid = service.pid().as_raw_nonzero();
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned()))
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && sockets.iter().any(|inode| inode == row[9]))
        .filter_map(|row| u16::from_str_radix(row[1].rsplit_once(':')?.1, 16).ok())
        .collect()
}

#[test]
fn reads_from_a_follower_verify_and_its_locator_is_the_same() {
    let log = Log::postgres();
    let recorder = Recorder::new();
    let (leader, follower) = (log.serve(), log.serve());
    let statement = log.statement();
    assert_eq!(recorder.register(&mut leader.connection(), &statement), Outcome::Registered);
    let mut connection: Connection = follower.connection();
    until(
        PATIENCE,
        || "a follower never sees the entry",
        || recorder.resolve(&mut connection, statement.digest()).unwrap().status == 200,
    );
    recorder.must_have_kept_its_word(&follower);
    recorder.verdict(&log, leader);
}
