//! Faults that must be caused from within: a full disk, a connection in doubt.

use std::sync::Arc;

use merkle::LeafIndex;
use sqlx::{AssertSqlSafe, Row};
use store::contract::{Appender, entry};
use store::fsck::{Fsck, Opaque};
use store::{Collateral, CommitError, Custody, LogStore, NewEntry, StoreError};

use crate::{CHECKPOINT_BYTES, Settings, Sqlite};

async fn store(folder: &tempfile::TempDir, allow_filesystem: bool) -> Sqlite {
    let settings = Settings { allow_filesystem, ..Settings::new(folder.path().join("log.db")) };
    Sqlite::open(settings).await.unwrap()
}

async fn run(store: &Sqlite, sql: String) {
    sqlx::query(AssertSqlSafe(sql)).execute(&store.write).await.unwrap();
}

fn large(n: u64) -> NewEntry {
    let statement = bytes::Bytes::from(vec![n as u8; 100_000]);
    NewEntry { digest: merkle::EntryDigest::of(&statement), statement, ..entry(n) }
}

#[tokio::test]
async fn r11_a_full_disk_refuses_the_batch_and_the_same_batch_is_committed_once_there_is_space() {
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
        let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&store.write).await.unwrap();
        run(&store, format!("PRAGMA max_page_count = {}", pages + 10)).await;
        let batch = appender.batch(vec![entry(3), large(4)]);
        for _ in 0..3 {
            match store.commit(&batch).await {
                Err(CommitError::NotCommitted(StoreError::Unavailable(text))) => {
                    assert!(text.contains("full"), "{text}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(store.head().await.unwrap(), *appender.head(), "reads go on");
            assert!(store.find(&[entry(3).digest]).await.unwrap()[0].is_none());
        }
        run(&store, "PRAGMA max_page_count = 1000000".into()).await;
        appender.commit(&batch).await.unwrap();
        appender.append_entries(vec![entry(5)]).await.unwrap();
        assert!(Fsck::new(&store, &Opaque).deep().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn r07_a_process_in_doubt_writes_nothing_more_and_still_reads() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
    store.shared.poison();
    let refused = appender.append_entries(vec![entry(3)]).await;
    assert!(matches!(refused, Err(CommitError::NotCommitted(StoreError::Refused(_)))), "{refused:?}");
    assert!(matches!(store.take_over("again").await, Err(StoreError::Refused(_))));
    assert_eq!(store.head().await.unwrap(), *appender.head());
}

#[tokio::test]
async fn the_write_ahead_log_is_copied_before_it_grows_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    let mut appender = Appender::new(Arc::new(store.clone())).await;
    for n in 0..8 {
        appender.append_entries((n * 60..(n + 1) * 60).map(large_and_new).collect()).await.unwrap();
    }
    let length =
        |suffix: &str| std::fs::metadata(folder.path().join(format!("log.db{suffix}"))).unwrap().len();
    assert!(length("-wal") < 2 * CHECKPOINT_BYTES, "{}", length("-wal"));
    assert!(length("") > CHECKPOINT_BYTES, "{}", length(""));
}

fn large_and_new(n: u64) -> NewEntry {
    let mut bytes = vec![0; 100_000];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    let statement = bytes::Bytes::from(bytes);
    NewEntry { digest: merkle::EntryDigest::of(&statement), statement, ..entry(n) }
}

#[tokio::test]
async fn settings_that_would_forget_a_commit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    store.check_durability().await.unwrap();
    run(&store, "PRAGMA synchronous = NORMAL".into()).await;
    match store.check_durability().await {
        Err(StoreError::Refused(text)) => assert!(text.contains("synchronous"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_was_erased_is_in_none_of_the_files_any_more() {
    const SECRET: &[u8] = b"what nobody may read any more";
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
        let statement = bytes::Bytes::from([SECRET, &vec![7; 20_000]].concat());
        let secret = NewEntry {
            digest: merkle::EntryDigest::of(&statement),
            statement,
            facts: format!("{{\"said\":\"{}\"}}", String::from_utf8_lossy(SECRET)),
            collateral: vec![Collateral { kind: 2, bytes: bytes::Bytes::from_static(SECRET) }],
            ..entry(3)
        };
        appender.append_entries(vec![secret]).await.unwrap();
        appender.append(0).await;
        assert!(is_in_a_file(&folder, SECRET), "the search finds what is there");
        store.erase(&[LeafIndex::new(3)]).await.unwrap();
        assert!(!is_in_a_file(&folder, SECRET));
    }
}

fn is_in_a_file(folder: &tempfile::TempDir, what: &[u8]) -> bool {
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.is_file()).any(|file| {
        let bytes = std::fs::read(file).unwrap();
        bytes.windows(what.len()).any(|window| window == what)
    })
}

#[tokio::test]
async fn searches_read_the_index_in_its_order_and_sort_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    for query in [
        "SELECT idx FROM lookup WHERE kind = 1 AND value = 'x' AND idx >= 5 AND idx < 9 ORDER BY idx LIMIT 3",
        "SELECT idx FROM lookup WHERE kind = 1 AND value = 'x' AND idx >= 5 AND idx < 9 ORDER BY idx DESC LIMIT 3",
        "SELECT idx FROM lookup NOT INDEXED WHERE kind = 1 AND value = 'x' AND idx IN (1, 2)",
        "DELETE FROM lookup WHERE idx >= 5 AND idx < 9",
        "SELECT kind, value, idx FROM lookup WHERE idx IN (1, 2)",
    ] {
        let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}")));
        let rows = rows.fetch_all(&store.write).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(plan.iter().all(|step| step.starts_with("SEARCH lookup")), "{query}: {plan:?}");
    }
}

#[tokio::test]
async fn a_frozen_log_stays_frozen_and_only_an_empty_one_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    Appender::with(Arc::new(store.clone()), 3).await;
    let refused = async |change: &str| {
        let update = sqlx::query(AssertSqlSafe(format!("UPDATE log SET {change}")));
        update.execute(&store.write).await.unwrap_err().to_string()
    };
    assert!(refused("filling = zeroblob(32)").await.contains("only an empty log can be filled"));
    run(&store, "UPDATE log SET frozen_at = 5".into()).await;
    for change in ["frozen_at = NULL", "frozen_at = 6", "epoch = epoch + 1", "holder = 'somebody'"] {
        assert!(refused(change).await.contains("it is frozen"), "{change}");
    }
}
