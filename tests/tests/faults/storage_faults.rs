//! Storage that fails under a running service, and then works again: nothing that was answered is lost, nothing that was
//! accepted is forgotten, reads go on, and the log registers again by itself (R7, R11, R12, R13).

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{
    Answer, Call, Cluster, Database, Errno, Fault, Load, Log, Outcome, Recorder, Service, StorageFaults,
    until,
};
use rustix::process::{Resource, Rlimit, prlimit};
use scitt::SignedStatement;
use scitt::problem::TABELLION;
use serde_json::json;

/// How soon after the end of a fault the log must register again (I14).
const HEALED: Duration = Duration::from_secs(30);
/// How often a registration is tried while the storage fails.
const TRIES: usize = 6;
/// No waiting for the disk to fill up: the storage shall fail.
const UNTIL_FULL: &str = "min_free_bytes = 0\nanswer_within_ms = 300";

/// A log and what it has promised, on storage that fails on request.
struct Scene {
    log: Log,
    faults: StorageFaults,
    recorder: Recorder,
    service: Service,
}

impl Scene {
    fn sqlite() -> Self {
        let (log, faults) = (Log::sqlite(), StorageFaults::new());
        log.configure(UNTIL_FULL);
        let service = Service::started_with_faults(&log, &faults).unwrap();
        let scene = Self { log, faults, recorder: Recorder::new(), service };
        for _ in 0..3 {
            scene.must_register_again();
        }
        scene
    }

    /// The folder of the database.
    fn data(&self) -> PathBuf {
        self.log.path("data").canonicalize().unwrap()
    }

    /// The codes of the refusals while the storage fails.
    fn refusals(&self) -> Vec<String> {
        let mut codes = Vec::new();
        for _ in 0..TRIES {
            // The recorder knows it: a refusal of this kind says that it may be handed in again, not that it never enters.
            let statement = self.log.statement();
            if self.recorder.register(&mut self.service.connection(), &statement) != Outcome::TurnedAway {
                continue;
            }
            let answer = self.service.connection().post(statement.bytes());
            assert!(matches!(answer.status, 201 | 202 | 503), "{answer:?}");
            if answer.status == 503 {
                answer.must_have("retry-after");
                codes.push(code(&answer));
            }
        }
        codes
    }

    #[track_caller]
    fn must_read(&self) {
        let entry = self.recorder.any_registered().unwrap();
        let answer = self.recorder.resolve(&mut self.service.connection(), entry).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(self.service.connection().get("/checkpoint").status, 200);
    }

    /// The fault is over.
    #[track_caller]
    fn must_register_again(&self) {
        must_register(&self.log, &self.recorder, &self.service);
    }

    #[track_caller]
    fn verdict(self) {
        let Self { log, faults, recorder, service } = self;
        faults.end();
        black_box::resolve_what_was_left_open(&recorder, &service);
        recorder.must_have_kept_its_word(&service);
        service.stop();
        assert!(!log.path("data/log.db-wal").exists(), "the database is complete in its one file");
        log.must_be_sound();
    }
}

/// A busy machine may take longer than an answer waits, and accepts what it registers later.
#[track_caller]
fn must_register(log: &Log, recorder: &Recorder, service: &Service) {
    until(
        HEALED,
        || format!("it does not register: {}", service.said()),
        || recorder.register(&mut service.connection(), &log.statement()) == Outcome::Registered,
    );
}

fn code(answer: &Answer) -> String {
    let problem = answer.problem();
    let code = problem.get(TABELLION, &"code".into()).and_then(|code| code.as_text());
    code.expect("every problem has a code").to_owned()
}

/// Everything that writes below the folder of the database fails, then works again.
#[track_caller]
fn everything_fails(error: Errno, codes: &[&str]) {
    let scene = Scene::sqlite();
    scene.faults.begin(&Fault::of_everything(error, &scene.data()));
    let refusals = scene.refusals();
    assert!(!refusals.is_empty() && refusals.iter().all(|code| codes.contains(&&**code)), "{refusals:?}");
    assert!(refusals.contains(&codes[0].to_owned()), "{refusals:?}");
    scene.service.must_find("a registration could not be stored");
    scene.must_read();
    scene.faults.end();
    scene.must_register_again();
    scene.service.must_become_ready();
    scene.verdict();
}

#[test]
fn r11_a_full_disk_refuses_with_the_reason_and_the_log_registers_again_once_there_is_space() {
    everything_fails(Errno::NoSpace, &["storage-full"]);
}

#[test]
fn r07_a_failing_disk_refuses_with_the_reason_and_the_log_registers_again_once_it_works() {
    everything_fails(Errno::Io, &["storage-failing"]);
}

#[test]
fn r13_a_read_only_disk_refuses_with_the_reason_and_the_log_registers_again_once_it_is_writable() {
    // The first write that fails only says that it failed; opening says why.
    everything_fails(Errno::ReadOnly, &["storage-read-only", "storage-failing"]);
}

/// One flush of the write-ahead log fails, and the next would succeed: what it covered may not be on the disk.
#[test]
fn r07_one_flush_that_fails_is_not_taken_for_done_and_the_log_goes_on() {
    for error in [Errno::Io, Errno::NoSpace] {
        let scene = Scene::sqlite();
        for after in 0..4 {
            let data = scene.data();
            let calls = [Call::Sync];
            let fault = Fault {
                calls: &calls,
                suffix: "-wal",
                after,
                times: Some(1),
                ..Fault::of_everything(error, &data)
            };
            scene.faults.begin(&fault);
            let load = Load { log: &scene.log, recorder: &scene.recorder, writers: 3 };
            let begun = Instant::now();
            load.on(&scene.service, || {
                while scene.faults.failed() == 0 {
                    assert!(begun.elapsed() < HEALED, "nothing was flushed");
                    sleep(Duration::from_millis(5));
                }
            });
            scene.must_register_again();
        }
        assert!(scene.service.said().contains("by a new connection"), "{}", scene.service.said());
        scene.verdict();
    }
}

/// Under load, the n-th call that changes a file of the database fails, and all after it, until the room is given back: the
/// inbox, a batch, its COMMIT, the signatures.
#[test]
fn r11_whichever_write_finds_the_disk_full_the_log_registers_again() {
    let scene = Scene::sqlite();
    for after in 0..12 {
        let data = scene.data();
        scene.faults.begin(&Fault { after, ..Fault::of_everything(Errno::NoSpace, &data) });
        let load = Load { log: &scene.log, recorder: &scene.recorder, writers: 4 };
        let begun = Instant::now();
        load.on(&scene.service, || {
            while scene.faults.failed() < 3 {
                assert!(begun.elapsed() < HEALED, "nothing failed");
                sleep(Duration::from_millis(5));
            }
            scene.must_read();
        });
        scene.faults.end();
        scene.must_register_again();
    }
    scene.verdict();
}

/// The write-ahead log cannot be copied into the database file: registration goes on, and so does the copying, later.
#[test]
fn r11_a_checkpoint_that_finds_the_disk_full_is_made_later() {
    for error in [Errno::NoSpace, Errno::Io] {
        let scene = Scene::sqlite();
        let data = scene.data();
        scene.faults.begin(&Fault { suffix: "/log.db", ..Fault::of_everything(error, &data) });
        let mut count = 0;
        while scene.faults.failed() == 0 {
            let outcome = scene.recorder.register(&mut scene.service.connection(), &large(count));
            assert!(matches!(outcome, Outcome::Registered | Outcome::Accepted), "{outcome:?}");
            count += 1;
            assert!(count < 200, "there is no checkpoint");
        }
        scene.must_read();
        scene.faults.end();
        scene.must_register_again();
        scene.verdict();
    }
}

fn large(n: usize) -> SignedStatement {
    testkit::opaque(&format!("large-{n}"), &json!({ "n": n, "filling": "x".repeat(400_000) }))
}

/// PostgreSQL ends itself when its write-ahead log fails, and recovers; when a table cannot grow, it says so.
#[test]
fn r07_r11_a_postgres_server_whose_disk_fails_loses_nothing_and_the_log_registers_again() {
    let faults = StorageFaults::new();
    let cluster = Cluster::start_with_faults(&[], &faults);
    let log = Log::on(Database::Postgres(cluster.url().to_owned()));
    log.configure(UNTIL_FULL);
    let (recorder, service, data) = (Recorder::new(), log.serve(), cluster.data());
    must_register(&log, &recorder, &service);
    let (tables, wal) = (data.join("base"), data.join("pg_wal"));
    let everything = |error, prefix| Fault::of_everything(error, prefix);
    let sync = [Call::Sync];
    for fault in [
        everything(Errno::NoSpace, &tables),
        everything(Errno::NoSpace, &wal),
        Fault { calls: &sync, times: Some(1), ..everything(Errno::Io, &wal) },
        everything(Errno::Io, &wal),
    ] {
        faults.begin(&fault);
        let load = Load { log: &log, recorder: &recorder, writers: 4 };
        let begun = Instant::now();
        load.on(&service, || {
            while faults.failed() == 0 {
                assert!(begun.elapsed() < HEALED, "nothing failed: {fault:?}");
                sleep(Duration::from_millis(5));
            }
            sleep(Duration::from_millis(300));
        });
        faults.end();
        until(
            HEALED,
            || format!("{fault:?}: it does not register again: {}", service.said()),
            || recorder.register(&mut service.connection(), &log.statement()) == Outcome::Registered,
        );
    }
    recorder.verdict(&log, service);
}

/// A file system that really is full, with other room left each time.
#[test]
fn r11_a_small_disk_that_is_filled_and_emptied_again_and_again_loses_nothing() {
    let log = Log::sqlite();
    log.configure(UNTIL_FULL);
    log.configure("fsck_rate = 100000\nfsck_every_seconds = 1");
    let recorder = Recorder::new();
    let service = Service::started_on_a_small_disk(&log, "data", 8_000).unwrap();
    let disk = service.disk(&log, "data");
    let load = Load { log: &log, recorder: &recorder, writers: 4 };
    for left in [0, 8, 40, 100, 200] {
        disk.fill(left << 10);
        let begun = Instant::now();
        load.on(&service, || {
            let full = || recorder.answers().get(&503).copied().unwrap_or_default();
            let before = full();
            while full() == before {
                assert!(begun.elapsed() < HEALED, "it is never full: {:?}", recorder.answers());
                sleep(Duration::from_millis(20));
            }
        });
        disk.empty();
        must_register(&log, &recorder, &service);
    }
    black_box::resolve_what_was_left_open(&recorder, &service);
    recorder.must_have_kept_its_word(&service);
    // The disk is gone with the process, so the service checks itself.
    let checked = service.metric("tabellion_fsck_last_success_timestamp_seconds");
    until(
        HEALED,
        || "the log is not checked",
        || service.metric("tabellion_fsck_last_success_timestamp_seconds") > checked + 1.0,
    );
    service.must_become_ready();
    assert_eq!(service.metric("tabellion_fsck_mismatch_total"), 0.0);
    service.stop();
}

/// Registration ends before the disk is full, and begins again once there is space.
#[test]
fn r11_below_the_threshold_nothing_is_registered_and_everything_is_read() {
    for folder in ["data", "state"] {
        let log = Log::sqlite();
        log.configure("min_free_bytes = 2000000");
        log.serve().stop();
        let recorder = Recorder::new();
        let service = Service::started_on_a_small_disk(&log, folder, 8_000).unwrap();
        let known = log.statement();
        assert_eq!(recorder.register(&mut service.connection(), &known), Outcome::Registered);
        service.must_become_ready();
        let disk = service.disk(&log, folder);
        disk.fill(1_500_000);
        service.must_find("(min_free_bytes)");
        assert_eq!(service.metric("tabellion_storage_low"), 1.0);
        assert!(service.metric("tabellion_storage_free_bytes") < 2e6);
        let answer = service.connection().post(log.statement().bytes());
        assert_eq!((answer.status, code(&answer)), (503, "storage-full".to_owned()));
        answer.must_have("retry-after");
        assert_eq!(recorder.register(&mut service.connection(), &known), Outcome::Registered);
        recorder.must_have_kept_its_word(&service);
        disk.empty();
        service.must_become_ready();
        must_register(&log, &recorder, &service);
        service.stop();
    }
}

#[test]
fn r13_a_start_on_a_read_only_disk_ends_with_the_reason() {
    let (log, faults) = (Log::sqlite(), StorageFaults::new());
    log.serve().stop();
    let data = log.path("data").canonicalize().unwrap();
    faults.begin(&Fault::of_everything(Errno::ReadOnly, &data));
    let Err(ended) = Service::started_with_faults(&log, &faults) else { panic!("it started") };
    assert!(ended.code == Some(7) && ended.stderr.contains("storage-read-only"), "{ended}");
    faults.end();
    log.serve().stop();
}

/// Beyond the limit (`ulimit -f`) the kernel ends a process that does not handle the signal.
#[test]
fn r11_a_limit_of_the_size_of_files_refuses_registration_until_it_is_lifted() {
    let log = Log::sqlite();
    log.configure(UNTIL_FULL);
    let (recorder, service) = (Recorder::new(), log.serve());
    must_register(&log, &recorder, &service);
    limit_files(&service, Some(3_000_000));
    let is_refused = |n| recorder.register(&mut service.connection(), &large(n)) == Outcome::TurnedAway;
    assert!((0..200).any(is_refused), "the limit is never reached: {:?}", recorder.answers());
    service.must_find("a registration could not be stored");
    assert_eq!(service.connection().get("/checkpoint").status, 200);
    limit_files(&service, None);
    must_register(&log, &recorder, &service);
    service.must_become_ready();
    recorder.verdict(&log, service);
}

/// Sets the number of bytes that a file of the process may have.
fn limit_files(service: &Service, most: Option<u64>) {
    prlimit(Some(service.pid()), Resource::Fsize, Rlimit { current: most, maximum: None }).unwrap();
}

/// The pin is raised in place, which needs no room.
#[test]
fn r12_a_state_directory_without_room_does_not_stop_registration() {
    let log = Log::sqlite();
    log.configure(UNTIL_FULL);
    log.serve().stop();
    let recorder = Recorder::new();
    let service = Service::started_on_a_small_disk(&log, "state", 1_000).unwrap();
    must_register(&log, &recorder, &service);
    let disk = service.disk(&log, "state");
    disk.fill(0);
    for _ in 0..20 {
        must_register(&log, &recorder, &service);
    }
    disk.empty();
    recorder.must_have_kept_its_word(&service);
    service.stop();
}
