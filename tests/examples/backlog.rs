//! How much memory a process needs that starts with a large backlog in its inbox, and how long it takes to register it:
//!
//! ```text
//! ./test --run cargo run -p black-box --example backlog -- 1000     # MB of statements
//! ```
//!
//! While the head row is locked, a follower accepts the statements and nobody registers them; then all are killed, and another starts.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use black_box::{Log, Service, sql};
use serde_json::json;

/// Bytes in each statement's payload.
const LENGTH: usize = 400_000;
/// Clients that hand in.
const CLIENTS: usize = 4;
/// How long it may take until a statement is accepted.
const ACCEPTED: Duration = Duration::from_secs(60);
/// How long the backlog may take to be registered.
const DRAINED: Duration = Duration::from_secs(600);

fn main() {
    let mb: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let log = Log::postgres();
    let most = 4_000_000_000_u64;
    log.configure(&format!("answer_within_ms = 1\ninbox_bytes = {most}\ninbox_issuer_bytes = {most}"));
    let service = log.serve();
    let idle = peak(&service);
    let lock = lock_head(&log);
    // It keeps what it is handed for the one that leads, which cannot.
    let follower = log.serve();
    let handed_in = AtomicU64::new(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (service, handed_in) = (&follower, &handed_in);
            scope.spawn(move || hand_in(service, client, mb * 1_000_000, handed_in));
        }
    });
    let before = peak(&follower);
    follower.kill();
    service.kill();
    unlock(lock, &log);
    let waiting = sql(
        &log.database().url(),
        "SELECT count(*) || ' statements, ' || sum(length(submission)) || ' bytes' FROM inbox",
    );
    let begun = Instant::now();
    let service = log.serve();
    while sql(&log.database().url(), "SELECT count(*) FROM inbox") != "0" {
        assert!(begun.elapsed() < DRAINED, "the inbox is not emptied: {}", service.said());
        thread::sleep(Duration::from_millis(200));
    }
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{:#}",
        json!({
            "backlog": waiting, "seconds": took, "peak_mb_idle": mb_of(idle),
            "peak_mb_accepting": mb_of(before), "peak_mb_registering": mb_of(peak(&service)),
        })
    );
    service.stop();
    log.must_be_sound();
}

fn hand_in(service: &Service, client: usize, bytes: u64, handed_in: &AtomicU64) {
    let mut connection = service.connection();
    for n in 0.. {
        let place = handed_in.fetch_add(LENGTH as u64, Ordering::Relaxed);
        if place >= bytes {
            return;
        }
        let statement = testkit::opaque(
            &format!("large-{client}-{n}"),
            &json!({ "n": n, "filling": "x".repeat(LENGTH) }),
        );
        let begun = Instant::now();
        // While the head cannot be moved, the process is turned away from time to time, and says so.
        while !matches!(connection.post(statement.bytes()).status, 201 | 202) {
            assert!(begun.elapsed() < ACCEPTED, "it is not accepted: {}", service.said());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Keeps a session open that holds the row.
fn lock_head(log: &Log) -> Child {
    let url = log.database().url();
    let script = "BEGIN; SELECT 1 FROM log FOR UPDATE; SELECT pg_sleep(3600);";
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--quiet", "-c", script, &url]).stdout(Stdio::null());
    let lock = psql.spawn().expect("psql is on PATH");
    let held =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND wait_event = 'PgSleep'";
    while sql(&url, held) == "0" {
        thread::sleep(Duration::from_millis(20));
    }
    lock
}

fn unlock(mut lock: Child, log: &Log) {
    let _ = lock.kill();
    let _ = lock.wait();
    let ours = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT 1%'";
    sql(&log.database().url(), ours);
}

/// The most memory that a process has held, in bytes.
fn peak(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid().as_raw_nonzero()));
    let status = status.expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

const fn mb_of(bytes: u64) -> u64 {
    bytes / 1_000_000
}
