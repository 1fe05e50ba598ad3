//! While nothing can be registered, for whatever reason, everything old stays readable (I11): entries, receipts, proofs,
//! checkpoint and tiles, each as it was.

use std::fs;

use black_box::{Answer, Log, Outcome, Recorder, Service, on_both_databases};
use rustix::process::{Resource, Rlimit, prlimit};
use scitt::{Receipt, SignedStatement};

/// Entries that stand when registration begins to be refused.
const OLD: usize = 5;
/// Registrations until a database that may not grow has no room left.
const UNTIL_FULL: usize = 2_000;

/// Old entries, and what was served of them.
struct Old {
    statements: Vec<SignedStatement>,
    pages: Vec<(String, Answer)>,
}

impl Old {
    fn of(log: &Log, service: &Service, recorder: &Recorder) -> Self {
        let statements: Vec<SignedStatement> = (0..OLD).map(|_| log.statement()).collect();
        for statement in &statements {
            assert_eq!(recorder.register(&mut service.connection(), statement), Outcome::Registered);
        }
        let size: u64 = size_of(&service.connection().get("/checkpoint"));
        let mut paths = vec![
            format!("/tile/0/000.p/{size}"),
            format!("/tile/entries/000.p/{size}"),
            format!("/v1/proof/consistency?first=2&second={size}"),
            format!("/v1/checkpoints/{size}"),
            "/.well-known/scitt-keys".to_owned(),
        ];
        paths.extend(statements.iter().map(|one| format!("/v1/entries/{}/statement", one.digest())));
        let mut connection = service.connection();
        let pages = paths.into_iter().map(|path| {
            let answer = connection.get(&path);
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            (path, answer)
        });
        let pages = pages.collect();
        Self { statements, pages }
    }

    /// Asked for like anybody would.
    #[track_caller]
    fn must_be_readable(&self, service: &Service) {
        let mut connection = service.connection();
        for (path, before) in &self.pages {
            let now = connection.get(path);
            assert_eq!((now.status, &now.body), (200, &before.body), "{path}: {now:?}");
        }
        let checkpoint = connection.get("/checkpoint");
        assert_eq!(checkpoint.status, 200, "{checkpoint:?}");
        for statement in &self.statements {
            let answer = connection.get(&format!("/entries/{}", statement.digest()));
            assert_eq!(answer.status, 200, "{answer:?}");
            let receipt = Receipt::parse(answer.body).unwrap();
            assert!(receipt.implied_root(&statement.digest().leaf_hash()).is_ok());
        }
        let listed = connection.get("/v1/entries?limit=10").json();
        assert!(listed["entries"].as_array().unwrap().len() > OLD);
    }
}

/// The second line of a checkpoint.
fn size_of(checkpoint: &Answer) -> u64 {
    let note = String::from_utf8(checkpoint.body.clone()).unwrap();
    note.lines().nth(1).unwrap().parse().unwrap()
}

#[track_caller]
fn must_refuse(log: &Log, service: &Service) {
    let answer = service.connection().post(log.statement().bytes());
    assert_eq!(answer.status, 503, "{answer:?}");
    answer.must_have("retry-after");
}

on_both_databases! {
    fn i11_reads_go_on_while_the_database_is_behind_what_was_signed(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let old = Old::of(&log, &service, &recorder);
        service.stop();
        let backup = log.database().back_up();
        let service = log.serve();
        assert_eq!(recorder.register(&mut service.connection(), &log.statement()), Outcome::Registered);
        service.stop();
        log.database().restore(&backup);
        let service = log.serve();
        must_refuse(&log, &service);
        service.must_find("this log has signed 7");
        old.must_be_readable(&service);
        service.stop();
    }

    fn i11_reads_go_on_while_the_state_directory_is_gone(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let old = Old::of(&log, &service, &recorder);
        let state = log.path("state");
        fs::rename(&state, log.path("moved")).unwrap();
        fs::write(&state, b"not a folder").unwrap();
        let outcome = recorder.register(&mut service.connection(), &log.statement());
        assert!(!matches!(outcome, Outcome::Registered), "what cannot be pinned is not signed: {outcome:?}");
        must_refuse(&log, &service);
        service.must_find("the pin cannot be kept");
        old.must_be_readable(&service);
        service.stop();
        fs::remove_file(&state).unwrap();
        fs::rename(log.path("moved"), &state).unwrap();
        recorder.verdict(&log, log.serve());
    }

    fn i11_reads_go_on_while_the_log_is_damaged_and_so_does_registration(log: Log) {
        log.configure("fsck_rate = 100000\nfsck_every_seconds = 1");
        let recorder = Recorder::new();
        let service = log.serve();
        let outcome = recorder.register(&mut service.connection(), &testkit::vrf(1));
        assert_eq!(outcome, Outcome::Registered);
        let old = Old::of(&log, &service, &recorder);
        let damage = "UPDATE guard SET idx = 2 WHERE idx = 1";
        log.database().by_hand("guard", &[damage], &[damage]);
        service.must_find("guard: a guard of entry 1");
        old.must_be_readable(&service);
        assert_eq!(recorder.register(&mut service.connection(), &log.statement()), Outcome::Registered);
        recorder.must_have_kept_its_word(&service);
        service.stop();
    }
}

#[test]
fn i11_reads_go_on_while_the_disk_has_no_room() {
    let log = Log::sqlite();
    let recorder = Recorder::new();
    let service = log.serve();
    let old = Old::of(&log, &service, &recorder);
    let room = Some(256 << 10);
    prlimit(Some(service.pid()), Resource::Fsize, Rlimit { current: room, maximum: room }).unwrap();
    let mut connection = service.connection();
    let full =
        (0..UNTIL_FULL).any(|_| recorder.register(&mut connection, &log.statement()) != Outcome::Registered);
    assert!(full, "there is still room");
    must_refuse(&log, &service);
    old.must_be_readable(&service);
    service.kill();
    recorder.verdict(&log, log.serve());
}
