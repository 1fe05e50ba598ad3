//! A process that is killed, and one that comes after it.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use evidence::contract::Stream;
use evidence::{Change, DeliveryState, EvidenceStore, Instances, Outbox};
use evidence_sqlite::{Settings, Sqlite};

const FOLDER: &str = "TABELLION_TEST_CRASH_FOLDER";
const STREAMS: usize = 7;

/// V-12, X-5: a call that was let through was decided on disk; killing the process at any moment loses no decision.
#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_answered_and_nothing_is_half_there() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return commit_until_killed(Path::new(&folder)).await;
    }
    for round in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let answered = kill_after(folder.path(), Duration::from_millis(40 + 31 * round));
        let store = Sqlite::open(settings(folder.path(), "after")).await.unwrap();
        let found = expect_whole(&store).await;
        assert!(found >= answered, "{answered} changes were answered, and {found} are there");
        let served = store.orphans(1_000_000).await.unwrap().len();
        assert_eq!(served as u64, store.backlog().await.unwrap().records, "each of them is recovered");
        Stream::new("after the crash").grow(&store, 1).await;
    }
}

fn settings(folder: &Path, instance: &str) -> Settings {
    Settings::new(folder.join("evidence.db"), instance)
}

/// Runs this test as another process, and kills it; answers how many changes it said it had committed.
fn kill_after(folder: &Path, time: Duration) -> u64 {
    let name = "a_killed_process_loses_nothing_that_it_answered_and_nothing_is_half_there";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The time runs from the first commit on: how long a process takes to start is not the point.
    let said = |line: &str| line.strip_prefix("changes ").and_then(|count| count.parse::<u64>().ok());
    let first = lines.by_ref().map_while(Result::ok).find_map(|line| said(&line)).unwrap();
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
    lines.map_while(Result::ok).filter_map(|line| said(&line)).last().unwrap_or(first)
}

/// Groups of all sizes.
async fn commit_until_killed(folder: &Path) {
    let store = Sqlite::open(settings(folder, "killed")).await.unwrap();
    let mut streams: Vec<Stream> = (0..STREAMS).map(|n| Stream::new(&format!("stream {n}"))).collect();
    let mut count = 0;
    for round in 0.. {
        let changes: Vec<Change> = (0..=round % 20)
            .map(|turn| {
                let (_, change) = streams[(round * 3 + turn) % STREAMS].serve();
                Change { agreed: Some(Bytes::from(change.from.unwrap_or(0).to_string())), ..change }
            })
            .collect();
        store.commit(&changes).await.unwrap();
        count += changes.len();
        println!("changes {count}");
    }
}

/// Every stream's version, state and records say the same; answers how many changes there were.
async fn expect_whole(store: &Sqlite) -> u64 {
    let (mut changes, mut waiting) = (0, 0);
    for listed in store.list(None, 100).await.unwrap() {
        let kept = store.streams(&[&listed.stream]).await.unwrap().remove(0).unwrap();
        let records = store.records(&listed.stream, 0, 1_000_000).await.unwrap();
        assert_eq!((kept.version, records.len() as u64), (kept.next_seq, kept.version));
        assert_eq!(kept.agreed.unwrap(), (kept.version - 1).to_string());
        assert!(records.iter().all(|stored| stored.delivery == DeliveryState::Pending));
        changes += kept.version;
        waiting += records.len() as u64;
    }
    assert_eq!(store.backlog().await.unwrap().records, waiting);
    assert_eq!(store.pending(1_000_000).await.unwrap().len() as u64, waiting);
    changes
}

/// A write-ahead log that ends anywhere gives an older state, and never half of a group.
#[tokio::test]
async fn a_truncated_write_ahead_log_opens_at_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let live = folder.path().join("live.db");
    let store = Sqlite::open(Settings::new(&live, "live")).await.unwrap();
    let mut streams: Vec<Stream> = (0..3).map(|n| Stream::new(&format!("stream {n}"))).collect();
    let mut totals = vec![0];
    for round in 0..6 {
        let of = |stream: &mut Stream| {
            let (_, change) = stream.serve();
            Change { agreed: Some(Bytes::from(change.from.unwrap_or(0).to_string())), ..change }
        };
        let changes: Vec<Change> = streams.iter_mut().take(1 + round % 3).map(of).collect();
        store.commit(&changes).await.unwrap();
        totals.push(totals[round] + changes.len() as u64);
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let (database, wal) = (read("live.db"), read("live.db-wal"));
    for cut in (0..=wal.len()).rev().step_by(4096 + 24).flat_map(|at| [at, at.saturating_sub(1_000)]) {
        let copy = folder.path().join("copy.db");
        std::fs::write(&copy, &database).unwrap();
        std::fs::write(folder.path().join("copy.db-wal"), &wal[..cut]).unwrap();
        let _ = std::fs::remove_file(folder.path().join("copy.db-shm"));
        let store = Sqlite::open(Settings::new(&copy, format!("copy {cut}"))).await.unwrap();
        let found = expect_whole(&store).await;
        assert!(totals.contains(&found), "{found} changes were never all that was committed");
        store.close().await;
    }
}
