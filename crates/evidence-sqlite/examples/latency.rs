//! What a commit costs, beside what the disk costs: `cargo run -p evidence-sqlite --example latency [FOLDER] [ROUNDS]`.
//!
//! Each round writes and fdatasyncs 4 KiB into a file of its own, commits one change, commits a group of 50, and marks a
//! batch as delivered: so all of them meet the same disk.
#![allow(clippy::unwrap_used)]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use evidence::{Change, Delivered, EvidenceStore, Outbox, Record, RecordKind};
use evidence_sqlite::{Settings, Sqlite};
use merkle::EntryDigest;

const STREAMS: usize = 500;
const GROUP: usize = 50;
const STATEMENT: usize = 1_100;
const VERDICT: usize = 800;
const ANNEX: usize = 1_500;
const RUNNING: usize = 1_200;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let rounds: usize = arguments.next().map_or(1_000, |rounds| rounds.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let store = Sqlite::open(Settings::new(folder.path().join("evidence.db"), "measured")).await.unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(folder.path().join("beside")).unwrap();
    let mut streams: Vec<(String, u64)> =
        (0..STREAMS).map(|n| (format!("principal|session-{n:08}"), 0)).collect();
    let mut times: [Vec<Duration>; 4] = Default::default();
    let mut turn = 0;
    for _ in 0..rounds {
        times[0].push(timed(async { write(&mut file) }).await);
        for (index, size) in [(1, 1), (2, GROUP)] {
            let changes: Vec<Change> = (0..size).map(|_| next(&mut streams, &mut turn)).collect();
            times[index].push(timed(async { store.commit(&changes).await.unwrap() }).await);
        }
        let pending = store.pending(GROUP + 1).await.unwrap();
        let receipt = Some(Bytes::from(vec![7; 700]));
        let delivered: Vec<Delivered> = pending
            .iter()
            .map(|pending| Delivered { id: pending.id, leaf_index: Some(1), receipt: receipt.clone() })
            .collect();
        times[3].push(timed(async { store.delivered(&delivered).await.unwrap() }).await);
    }
    for (what, times) in
        ["fdatasync of 4 KiB", "commit of 1", "commit of 50", "delivery of 51"].into_iter().zip(times)
    {
        print_times(what, times);
    }
}

async fn timed(work: impl Future<Output = ()>) -> Duration {
    let begun = Instant::now();
    work.await;
    begun.elapsed()
}

fn write(file: &mut std::fs::File) {
    file.write_all(&[7; 4096]).unwrap();
    file.sync_data().unwrap();
}

fn next(streams: &mut [(String, u64)], turn: &mut usize) -> Change {
    let index = *turn % streams.len();
    *turn += 1;
    let (name, seq) = &mut streams[index];
    let mut statement = format!("{name} {seq} ").into_bytes();
    statement.resize(STATEMENT, 7);
    let record = Record {
        id: EntryDigest::of(&statement),
        stream: name.clone(),
        seq: *seq,
        kind: RecordKind::Decision,
        at: 1_700_000_000,
        statement: statement.into(),
        verdict: Some(vec![7; VERDICT].into()),
        annex: vec![7; ANNEX].into(),
    };
    let from = (*seq > 0).then_some(*seq);
    *seq += 1;
    Change {
        stream: name.clone(),
        from,
        first: 1,
        agreed: from.is_none().then(|| vec![7; 2_000].into()),
        running: vec![7; RUNNING].into(),
        closed: false,
        keep_until: from.is_none().then_some(1_800_000_000),
        opened: vec![record.id],
        records: vec![record],
        claims: Vec::new(),
        settled: Vec::new(),
        relies_on: Vec::new(),
    }
}

fn print_times(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    let worst = times[times.len() - 1].as_secs_f64() * 1e3;
    println!("{what:20} p50 {:8.3} ms   p99 {:8.3} ms   worst {worst:8.3} ms", at(50), at(99));
}
