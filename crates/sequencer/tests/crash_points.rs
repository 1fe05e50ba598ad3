//! Each crash point is on the road of a submission: the process dies there, and nothing was
//! promised that the pin does not cover. What survives on disk is tested where there is a disk.
#![cfg(feature = "crash-points")]

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use merkle::{RootHash, TreeSize};
use sequencer::PinFile;
use sequencer::pin::{Pin, PinError};
use support::{Log, named, policy, statement};

const POINTS: [&str; 10] = [
    "before-take-over",
    "after-take-over",
    "before-commit",
    "after-commit",
    "before-pin",
    "in-pin",
    "before-sign",
    "after-sign",
    "before-answer",
    "before-keep",
];

/// Does nothing, unless it is the child that the next test starts.
#[tokio::test]
async fn child() {
    if std::env::var_os("SEQUENCER_CRASH_CHILD").is_none() {
        return;
    }
    let log = Log::empty();
    let process = log.start().await;
    for n in 0..3 {
        let next = if n == 0 { policy(0) } else { statement(n) };
        log.submit(&process, next).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let _ = log.submit(&process, named("the last")).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
}

fn run(order: &str) -> bool {
    let child = Command::new(std::env::current_exe().expect("a test is a program"))
        .args(["--exact", "child"])
        .env("SEQUENCER_CRASH_CHILD", "1")
        .env("TABELLION_CRASH_AT", order)
        .output();
    child.expect("the child starts").status.success()
}

#[test]
fn the_process_dies_at_every_point_at_the_visit_ordered() {
    assert!(run("nowhere"));
    for point in POINTS {
        assert!(!run(point), "{point} is not visited");
        assert!(run(&format!("{point}:1000")), "{point} is visited too often");
    }
    assert!(!run("before-commit:4"));
    assert!(run("before-commit:5"));
}

fn pin(size: u64, epoch: u64) -> Pin {
    let root = RootHash::from_bytes([size as u8; 32]);
    Pin { origin: "log.example".into(), size: TreeSize::new(size), root, epoch }
}

/// Does nothing, unless it is the child that the next test starts.
#[test]
fn raising_child() {
    if let Some(folder) = std::env::var_os("SEQUENCER_PIN_FOLDER") {
        let file = PinFile::in_directory(folder);
        file.claim(&pin(1, 1)).unwrap();
        let late = file.raise(&pin(2, 1));
        assert!(matches!(late, Err(PinError::Superseded(_))), "{late:?}");
    }
}

fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn r31_a_process_that_is_stopped_in_a_raise_blocks_no_take_over_and_is_refused_when_it_wakes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(std::env::current_exe().expect("a test is a program"))
        .args(["--exact", "raising_child"])
        .env("SEQUENCER_PIN_FOLDER", folder.path())
        // The first visit is in the claim.
        .env("TABELLION_STOP_AT", "in-pin:2")
        .stdout(Stdio::null())
        .spawn()
        .expect("the child starts");
    let begun = Instant::now();
    while !is_stopped(child.id()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to its raise");
        std::thread::sleep(Duration::from_millis(5));
    }
    let file = PinFile::in_directory(folder.path());
    assert_eq!(file.read().unwrap(), Some(pin(1, 1)));
    file.claim(&pin(2, 2)).unwrap();
    file.raise(&pin(3, 2)).unwrap();
    let woken = Command::new("kill").args(["-CONT", &child.id().to_string()]).status();
    assert!(woken.expect("kill runs").success());
    assert!(child.wait().expect("it ends").success(), "its raise was refused");
    assert_eq!(file.read().unwrap(), Some(pin(3, 2)));
}
