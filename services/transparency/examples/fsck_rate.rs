//! How fast a deep check is, beside SHA-256 over the same bytes (G21): both in CPU time.
//!
//! ```text
//! cargo run --release -p transparency --example fsck_rate -- 100000
//! ```
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use merkle::tile::OpenTiles;
use merkle::{EntryDigest, LeafIndex};
use store::fsck::{Fsck, FsckFacts, NoFacts};
use store::{AppendedBatch, Batch, Entry, GuardKey, LogWriter, NewEntry};
use store_sqlite::{Settings, Sqlite};
use transparency::LogFacts;

/// Entries in one batch.
const BATCH: u64 = 256;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let size: u64 = std::env::args().nth(1).map_or(20_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Sqlite::open(Settings::new(folder.path().join("log.db"))).await.unwrap());
    let statements = fill(&store, size).await;
    let bytes: usize = statements.iter().map(Vec::len).sum();

    let begun = cpu_time();
    for statement in &statements {
        std::hint::black_box(EntryDigest::of(statement));
    }
    let hashing = cpu_time() - begun;
    drop(statements);
    println!("{size} entries, {} bytes each", bytes / size as usize);
    tell("SHA-256 of the statements", size, bytes, hashing, hashing);
    let begun = cpu_time();
    let report = Fsck::new(&*store, &NoFacts).deep().await.unwrap();
    assert_eq!(report.findings, []);
    tell("deep check, bytes and tree", size, bytes, cpu_time() - begun, hashing);
    let begun = cpu_time();
    let meaning = LogFacts::of(testkit::ORIGIN).unwrap();
    let report = Fsck::new(&*store, &meaning).deep().await.unwrap();
    // Nobody signed here, and the policy was put in by hand.
    let expected = ["signatures are missing", "guard of entry 0"];
    let is_expected = |text: String| expected.iter().any(|part| text.contains(part));
    let unexpected = report.findings.iter().find(|found| !is_expected(found.to_string()));
    assert_eq!(unexpected, None);
    tell("deep check, with meaning", size, bytes, cpu_time() - begun, hashing);
}

/// Of all threads of this process: neighbours hardly move it. In hundredths of a second.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    let ticks: u64 = after_name.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}

fn tell(what: &str, entries: u64, bytes: usize, took: Duration, hashing: Duration) {
    let seconds = took.as_secs_f64();
    println!(
        "{what:28} {:8.0} entries/s {:8.1} MB/s  {:.3} of SHA-256",
        entries as f64 / seconds,
        bytes as f64 / seconds / 1e6,
        hashing.as_secs_f64() / seconds,
    );
}

/// The policy, and VRF records with all their keys; gives the statements.
async fn fill(store: &Arc<Sqlite>, size: u64) -> Vec<Vec<u8>> {
    let mut head = store.open(testkit::ORIGIN).await.unwrap();
    let mut tiles = OpenTiles::empty();
    let mut all = Vec::new();
    while head.size().get() < size {
        // Anew for each batch: before the first there was no policy to be found.
        let meaning = LogFacts::of(testkit::ORIGIN).unwrap();
        let from = head.size().get();
        let count = if from == 0 { 1 } else { BATCH.min(size - from) };
        let statements: Vec<_> = (from..from + count)
            .map(|n| if n == 0 { testkit::policy_statement() } else { testkit::vrf(n) })
            .collect();
        let entries: Vec<Entry> =
            (from..).zip(&statements).map(|(n, statement)| entry(n, statement)).collect();
        let prepared: Vec<&Entry> = entries.iter().collect();
        meaning.prepare(&**store, &prepared).await.unwrap();
        // The policy is not in the log yet when its own guards are asked for.
        let guards =
            if from == 0 { Vec::new() } else { meaning.guards(&**store, &prepared).await.unwrap().held };
        let new = entries.iter().map(|entry| new_entry(entry, &meaning, &guards)).collect();
        let AppendedBatch { batch, tiles: open, .. } =
            Batch::append(&head, &tiles, head.at + 1, new).unwrap();
        store.commit(&batch).await.unwrap();
        all.extend(statements.iter().map(|statement| statement.bytes().to_vec()));
        (head, tiles) = (batch.to, open);
    }
    all
}

fn entry(n: u64, statement: &scitt::SignedStatement) -> Entry {
    Entry {
        index: LeafIndex::new(n),
        digest: statement.digest(),
        statement: Some(statement.bytes().to_vec().into()),
        policy: LeafIndex::new(0),
        rule: "rule".into(),
        facts: "{}".into(),
    }
}

fn new_entry(entry: &Entry, meaning: &LogFacts, guards: &[(GuardKey, LeafIndex)]) -> NewEntry {
    let own = guards.iter().filter(|(_, leaf)| *leaf == entry.index);
    NewEntry {
        digest: entry.digest,
        twin: meaning.twin(entry),
        statement: entry.statement.clone().unwrap(),
        policy: entry.policy,
        rule: entry.rule.clone(),
        facts: entry.facts.clone(),
        guards: own.map(|(guard, _)| guard.clone()).collect(),
        collateral: Vec::new(),
    }
}
