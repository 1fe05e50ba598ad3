//! What it costs a monitor to catch up: requests, bytes and hashes, from one size to a later one.
//!
//! ```text
//! cargo run --release -p monitor --example catch_up [size...]
//! ```
//!
//! A log in memory is served over HTTP on this machine; the monitor verifies a smaller tree first, and then the whole one:
//! in one request (`lean`), by the log's own proof after its checkpoint, by tiles alone as for any C2SP log, and with every
//! entry (`depth = "entries"`).
#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{Log, Nowhere, Shows, Tree, config};
use monitor::{CheckName, Depth, Monitor, Outcome, WatchedLog};

/// The ways, by name: whether one request is to do, whether the log makes proofs, and how deep.
const WAYS: [(&str, bool, bool, Depth); 4] = [
    ("one request", true, true, Depth::Checkpoints),
    ("own proof", false, true, Depth::Checkpoints),
    ("tiles", false, false, Depth::Checkpoints),
    ("every entry", false, false, Depth::Entries),
];

#[tokio::main]
async fn main() {
    let sizes: Vec<u64> = std::env::args().skip(1).map(|size| size.parse().unwrap()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 100_000, 1_000_000] } else { sizes };
    println!(
        "{:>9} {:>9}  {:<12} {:>8} {:>10} {:>6} {:>9}",
        "from", "to", "how", "requests", "bytes", "hashes", "ms"
    );
    for size in sizes {
        let tree = Tree::of(size, u64::MAX, 0);
        let log = Log::serve(Shows::tree(tree)).await;
        for from in [size / 3 + 1, size - 1] {
            for way in WAYS {
                catch_up(&log, from, size, way).await;
            }
        }
    }
}

async fn catch_up(
    log: &Log,
    from: u64,
    to: u64,
    (name, lean, makes_proofs, depth): (&str, bool, bool, Depth),
) {
    let folder = tempfile::tempdir().unwrap();
    let target = WatchedLog { lean, depth, ..log.target() };
    let mut monitor = Monitor::begin(&config(folder.path(), target)).unwrap();
    log.change(|shows| (shows.size, shows.makes_proofs) = (from, makes_proofs));
    monitor.once(&Nowhere).await;
    log.change(|shows| shows.size = to);
    let started = Instant::now();
    let round = monitor.once(&Nowhere).await.pop().unwrap();
    let took = started.elapsed();
    assert_eq!(
        (round.outcome(CheckName::Consistency), round.verified),
        (Some(Outcome::Ok), Some(to)),
        "{round:?}"
    );
    let cost = round.cost;
    println!(
        "{from:>9} {to:>9}  {name:<12} {:>8} {:>10} {:>6} {:>9.1}",
        cost.requests,
        cost.bytes,
        cost.hashes,
        took.as_secs_f64() * 1000.0
    );
}
