//! `log fsck --deep` that is stopped and goes on, at a rate, beside a service that registers.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use black_box::{Log, Outcome, Ran, Recorder, on_both_databases, until};

/// Entries of the log besides its policy.
const ENTRIES: usize = 30;
/// How long a check may take to write down where it is.
const PATIENCE: Duration = Duration::from_secs(30);
const RESUME: [&str; 6] = ["log", "fsck", "--deep", "--json", "--resume", "fsck.json"];

fn fsck(log: &Log) -> Ran {
    log.tabellion(&RESUME)
}

/// Begins a check that would take a minute, and kills it once it has written down where it is.
fn begin_and_kill(log: &Log) {
    let mut command = log.command();
    command.args(RESUME).args(["--rate", "1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    until(PATIENCE, || "it writes nothing down", || log.path("fsck.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

on_both_databases! {
    fn a_check_that_was_killed_goes_on_beside_a_service_that_registers(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let mut connection = service.connection();
        let mut register = |count: usize| {
            for _ in 0..count {
                assert_eq!(recorder.register(&mut connection, &log.statement()), Outcome::Registered);
            }
        };
        register(ENTRIES);
        begin_and_kill(&log);
        register(3);
        let state = fs::read_to_string(log.path("fsck.json")).unwrap();
        let ran = fsck(&log);
        let report = ran.must_succeed().json();
        assert_eq!((&report["clean"], &report["size"]), (&true.into(), &(ENTRIES + 1).into()), "{ran}");
        assert_eq!(report["entries"], ENTRIES + 1, "each of them once: {ran}");
        assert!(!log.path("fsck.json").exists(), "there is nothing to go on with");

        // Not of this log, and no state at all.
        for wrong in [state.replacen("\"log\":\"", "\"log\":\"00", 1), "{}".to_owned()] {
            fs::write(log.path("fsck.json"), wrong).unwrap();
            let ran = fsck(&log);
            assert_eq!(ran.code, Some(1), "{ran}");
            assert!(ran.stderr.contains("fsck-state"), "{ran}");
        }
        // Of a head that the log no longer has.
        let changed = state.replacen("\"root\":\"", "\"root\":\"00", 1);
        let digits = changed.find("\"root\":\"00").unwrap() + "\"root\":\"".len();
        let changed = format!("{}{}", &changed[..digits + 64], &changed[digits + 66..]);
        fs::write(log.path("fsck.json"), changed).unwrap();
        let ran = fsck(&log);
        assert_eq!(ran.code, Some(8), "{ran}");
        assert!(ran.stderr.contains("no longer in the log's history"), "{ran}");
        service.stop();
    }

    fn a_service_that_restarts_goes_on_with_its_check(log: Log) {
        log.configure("fsck_rate = 1\nfsck_every_seconds = 1");
        let recorder = Recorder::new();
        let service = log.serve();
        let mut connection = service.connection();
        for _ in 0..ENTRIES {
            assert_eq!(recorder.register(&mut connection, &log.statement()), Outcome::Registered);
        }
        let kept = log.path("state/fsck.json");
        until(PATIENCE, || format!("it writes nothing down: {}", service.said()), || kept.exists());
        service.kill();
        let walk = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["walk"].clone();
        let before = walk(&fs::read_to_string(&kept).unwrap());
        log.configure("fsck_rate = 100000");
        let service = log.serve();
        let has_checked = || service.metric("tabellion_fsck_last_success_timestamp_seconds") != 0.0;
        until(PATIENCE, || service.said(), has_checked);
        // The head that the first process began with is the one that the second has checked first.
        let size = before["head"]["size"].as_u64().unwrap();
        assert!(service.said().contains(&format!("the stored log was checked size={size} ")), "{}", service.said());
        service.stop();
        log.must_be_sound();
    }
}
