//! Processes that are kept from going on: a disk that takes long, a machine that stands still, no more open files, a database
//! whose processes are killed (R14, R15, R16, R18, R59).

use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{
    Call, Cluster, Database, Errno, Fault, Load, Log, Outcome, Recorder, Service, StorageFaults,
    on_both_databases, resolve_what_was_left_open, until,
};
use rustix::process::Signal;

/// How soon after the end of a fault the log must register again (I14).
const HEALED: Duration = Duration::from_secs(30);
/// What a process may have open: it needs some 40 itself.
const DESCRIPTORS: u32 = 64;
/// Connections that want more than that.
const FLOOD: usize = 200;
/// Stops of a process, and how long it stands still.
const STOPS: (u32, Duration) = (2, Duration::from_secs(5));

#[track_caller]
fn must_register_again(log: &Log, recorder: &Recorder, service: &Service) {
    until(
        HEALED,
        || format!("it does not register again: {}", service.said()),
        || recorder.register(&mut service.connection(), &log.statement()) == Outcome::Registered,
    );
}

#[test]
fn r14_a_flood_of_connections_that_takes_every_descriptor_ends_nothing() {
    let log = Log::sqlite();
    let recorder = Recorder::new();
    let service = Service::started_with_descriptors(&log, DESCRIPTORS).unwrap();
    must_register_again(&log, &recorder, &service);
    let address = service.connection().address().trim_start_matches("http://").to_owned();
    let flood: Vec<_> = (0..FLOOD).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", service.pid().as_raw_nonzero())).unwrap().count();
    until(HEALED, || format!("only {} are open", open()), || open() + 1 >= DESCRIPTORS as usize);
    drop(flood);
    must_register_again(&log, &recorder, &service);
    recorder.verdict(&log, service);
}

/// First every flush is slow, then one of them takes longer than whoever waits for it.
#[test]
fn r15_r16_a_slow_disk_and_one_that_stalls_lose_nothing_and_reads_go_on() {
    let (log, faults) = (Log::sqlite(), StorageFaults::new());
    let recorder = Recorder::new();
    let service = Service::started_with_faults(&log, &faults).unwrap();
    must_register_again(&log, &recorder, &service);
    let data = log.path("data").canonicalize().unwrap();
    let load = Load { log: &log, recorder: &recorder, writers: 4 };
    let fault = Fault { calls: &[Call::Sync], ..Fault::of_everything(Errno::Io, &data) };
    for (delay, times) in [(200, None), (2_000, Some(2)), (20_000, Some(1))] {
        faults.slow_down(&Fault { times, ..fault.clone() }, Duration::from_millis(delay));
        let begun = Instant::now();
        load.on(&service, || {
            while faults.failed() < times.unwrap_or(10) {
                assert!(begun.elapsed() < HEALED, "nothing was flushed");
                sleep(Duration::from_millis(5));
            }
            let known = recorder.any_registered().unwrap();
            let answer = recorder.resolve(&mut service.connection(), known).unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
        });
        faults.end();
        must_register_again(&log, &recorder, &service);
    }
    recorder.verdict(&log, service);
}

#[test]
fn r18_a_postgresql_whose_process_is_killed_under_load_loses_nothing() {
    let cluster = Cluster::start(&["restart_after_crash=on"]);
    let log = Log::on(Database::Postgres(cluster.url().to_owned()));
    let recorder = Recorder::new();
    let service = log.serve();
    let load = Load { log: &log, recorder: &recorder, writers: 6 };
    for _ in 0..2 {
        load.on(&service, || {
            sleep(Duration::from_millis(500));
            cluster.kill_a_session();
            sleep(Duration::from_millis(500));
        });
        must_register_again(&log, &recorder, &service);
    }
    recorder.verdict(&log, service);
}

on_both_databases! {
    fn r59_a_machine_that_stands_still_for_seconds_loses_nothing(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let load = Load { log: &log, recorder: &recorder, writers: 4 };
        for _ in 0..STOPS.0 {
            load.on(&service, || {
                sleep(Duration::from_millis(300));
                service.signal(Signal::STOP);
                sleep(STOPS.1);
                service.signal(Signal::CONT);
            });
            must_register_again(&log, &recorder, &service);
        }
        resolve_what_was_left_open(&recorder, &service);
        recorder.verdict(&log, service);
    }
}
