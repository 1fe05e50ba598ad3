//! How fast a log is audited: `cargo run --release -p audit --example many -- 100000` writes a log of mixed entries to a
//! SQLite file, audits it on every processor, and tells entries a second and the memory it took.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../tests/audit/log.rs"]
mod log;
#[allow(dead_code)]
#[path = "../tests/audit/mixed.rs"]
mod mixed;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use audit::{Audit, AuditState, StoreSource, Workers};
use store_sqlite::{Settings, Sqlite};

/// Entries of one batch.
const BATCH: usize = 256;

struct Threads(usize);

impl Workers for Threads {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < count);
        let run = || std::iter::from_fn(take).for_each(work);
        thread::scope(|scope| {
            (1..self.0).for_each(|_| drop(scope.spawn(run)));
            run();
        });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let entries: usize = arguments.first().map_or(Ok(2_000), |count| count.parse()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = arguments.get(1).map_or_else(|| folder.path().join("log.db"), PathBuf::from);
    if !path.exists() {
        let started = Instant::now();
        write(&path, entries).await;
        println!("written  {entries} entries in {:.1} s", started.elapsed().as_secs_f64());
    }
    let before = peak_memory();
    let store = Sqlite::open_read_only(Settings::new(&path)).await.unwrap();
    for threads in [1, thread::available_parallelism().map_or(1, usize::from)] {
        let started = Instant::now();
        let (source, workers) = (StoreSource::new(&store), Threads(threads));
        let mut audit = Audit::begin(&source, AuditState::default()).await.unwrap().with_workers(&workers);
        while audit.step().await.unwrap() {}
        let report = audit.report();
        let seconds = started.elapsed().as_secs_f64();
        assert!(report.is_clean(), "{:#?}", report.findings);
        println!(
            "audited  {} entries on {threads} threads in {seconds:.1} s: {:.0} a second; {} decided again",
            report.counts.entries,
            report.counts.entries as f64 / seconds,
            report.decided(),
        );
    }
    println!("memory   {before} KiB before, {} KiB at most", peak_memory());
}

async fn write(path: &std::path::Path, entries: usize) {
    let store = Sqlite::open(Settings::new(path)).await.unwrap();
    let mut mixer = mixed::Mixer::default();
    let mut log = log::Log::under(Arc::new(store.clone()), &mixer.policy()).await;
    while (log.size() as usize) < entries {
        let rest = entries - log.size() as usize;
        log.register(mixer.batch(rest.min(BATCH))).await;
    }
    store.close().await;
}

/// The most memory that this process has had at once, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0)
}
