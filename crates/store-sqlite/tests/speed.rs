//! Speed as a ratio that a regression would break by far, not as a benchmark.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Instant;

use merkle::EntryDigest;
use store::LogReader;
use store::contract::{Appender, entry};
use store_sqlite::{Settings, Sqlite};

#[tokio::test]
async fn batches_of_a_thousand_cost_little_more_per_entry_than_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(Settings::new(folder.path().join("log.db"))).await.unwrap();
    let mut appender = Appender::new(Arc::new(store.clone())).await;
    let mut spent = std::time::Duration::ZERO;
    for batch in 0..20 {
        let batch = appender.batch((batch * 1024..(batch + 1) * 1024).map(entry).collect());
        let start = Instant::now();
        appender.commit(&batch).await.unwrap();
        spent += start.elapsed();
    }
    let start = Instant::now();
    let digests: Vec<EntryDigest> = (0..4096).map(|n| entry(n * 7).digest).collect();
    let hits = store.find(&digests).await.unwrap().into_iter().flatten().count();
    let looked_up = start.elapsed();
    assert_eq!(hits, 20 * 1024 / 7 + 1);
    let rate = 20.0 * 1024.0 / spent.as_secs_f64();
    println!("{rate:.0} entries/s, 4096 keys looked up in {looked_up:?}");
    assert!(rate > 3_000.0, "{rate:.0} entries/s");
    assert!(looked_up.as_millis() < 1_000, "{looked_up:?}");
}
