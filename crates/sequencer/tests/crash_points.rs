//! Each crash point is on the road of a submission: the process dies there, and nothing was
//! promised that the pin does not cover. What survives on disk is tested where there is a disk.
#![cfg(feature = "crash-points")]

mod support;

use std::process::Command;
use std::time::Duration;

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
