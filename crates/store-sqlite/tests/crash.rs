//! Processes that die, and write-ahead logs that end early.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use store::LogWriter;
use store::contract::{Appender, ORIGIN};
use store::fsck::{Fsck, NoFacts};
use store_sqlite::{Settings, Sqlite};

const FOLDER: &str = "TABELLION_TEST_CRASH_FOLDER";

/// R2: whatever was acknowledged is there, whenever the process is killed; and nothing is half there.
#[tokio::test]
async fn r02_a_killed_process_loses_nothing_that_it_acknowledged() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return append_until_killed(Path::new(&folder)).await;
    }
    for round in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let acknowledged = kill_after(folder.path(), Duration::from_millis(60 + 37 * round));
        let store = Sqlite::open(Settings::new(folder.path().join("log.db"))).await.unwrap();
        let size = store.open(ORIGIN).await.unwrap().size().get();
        assert!(size >= acknowledged, "{acknowledged} were acknowledged, and {size} are there");
        assert_eq!(Fsck::new(&store, &NoFacts).deep().await.unwrap().findings, []);
    }
}

/// Runs this test as another process, and kills it; answers the last size that it said.
fn kill_after(folder: &Path, time: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "r02_a_killed_process_loses_nothing_that_it_acknowledged", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The time runs from the first commit on: how long a process takes to start is not the point.
    let said = |line: &str| line.strip_prefix("size ").and_then(|size| size.parse::<u64>().ok());
    let first = lines.by_ref().map_while(Result::ok).find_map(|line| said(&line)).unwrap();
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
    lines.map_while(Result::ok).filter_map(|line| said(&line)).last().unwrap_or(first)
}

async fn append_until_killed(folder: &Path) {
    let store = Sqlite::open(Settings::new(folder.join("log.db"))).await.unwrap();
    let mut appender = Appender::new(Arc::new(store)).await;
    for batch in 0.. {
        appender.append(1 + batch % 40).await;
        println!("size {}", appender.head().size());
    }
}

/// R9: a write-ahead log that ends anywhere gives an older log, and never a damaged one.
#[tokio::test]
async fn r09_a_truncated_write_ahead_log_opens_at_a_head_that_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let live = folder.path().join("live.db");
    let store = Sqlite::open(Settings::new(&live)).await.unwrap();
    let mut appender = Appender::new(Arc::new(store.clone())).await;
    let mut sizes = vec![0];
    for count in [1, 3, 255, 2] {
        appender.append(count).await;
        sizes.push(appender.head().size().get());
    }
    let (database, wal) = (fs::read(&live).unwrap(), fs::read(folder.path().join("live.db-wal")).unwrap());
    let mut seen = Vec::new();
    for cut in (0..=wal.len()).rev().step_by(4096 + 24).flat_map(|at| [at, at.saturating_sub(1000)]) {
        let copy = folder.path().join("copy.db");
        fs::write(&copy, &database).unwrap();
        fs::write(folder.path().join("copy.db-wal"), &wal[..cut]).unwrap();
        let _ = fs::remove_file(folder.path().join("copy.db-shm"));
        let store = Sqlite::open(Settings::new(&copy)).await.unwrap();
        let size = store.open(ORIGIN).await.unwrap().size().get();
        assert!(sizes.contains(&size), "size {size} was never committed");
        assert_eq!(Fsck::new(&store, &NoFacts).deep().await.unwrap().findings, []);
        store.close().await;
        seen.push(size);
    }
    assert!(seen.is_sorted_by(|later, earlier| later >= earlier), "{seen:?}");
    assert_eq!(seen.first(), sizes.last());
}
