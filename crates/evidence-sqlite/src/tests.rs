//! Tests of faults that must be caused within the crate: a full disk, a connection in doubt, a cancelled caller.

use std::time::Duration;

use bytes::Bytes;
use evidence::contract::Stream;
use evidence::{Change, CommitError, Delivered, EvidenceStore, Outbox, StoreError, Upkeep};
use sqlite::Repair;
use sqlx::{AssertSqlSafe, Row};

use crate::{Settings, Sqlite, limits};

async fn open(folder: &tempfile::TempDir) -> Sqlite {
    Sqlite::open(Settings::new(folder.path().join("evidence.db"), "one")).await.unwrap()
}

async fn pragma(store: &Sqlite, text: String) -> i64 {
    let mut writer = store.shared.writer.lock().await;
    let row = sqlx::query(AssertSqlSafe(format!("PRAGMA {text}")));
    row.fetch_one(writer.connection().unwrap()).await.unwrap().get(0)
}

fn large(change: Change) -> Change {
    Change { running: Bytes::from(vec![7; 200_000]), ..change }
}

#[tokio::test]
async fn a_full_disk_refuses_the_commit_and_the_same_commit_happens_once_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let (mut small, mut stream) = (Stream::new("small"), Stream::new("s"));
    let ids = small.grow(&store, 3).await;
    let pages = pragma(&store, "page_count".into()).await;
    pragma(&store, format!("max_page_count = {pages}")).await;
    let changes = [small.change(1), large(stream.change(2))];
    let before = store.backlog().await.unwrap();
    for _ in 0..3 {
        // The limit belongs to a connection, and another one does not have it.
        pragma(&store, format!("max_page_count = {pages}")).await;
        let outcome = store.commit(&changes).await;
        assert!(matches!(outcome, Err(CommitError::Full(_))), "{outcome:?}");
        assert_eq!(store.backlog().await.unwrap(), before);
        let kept = store.streams(&["s", "small"]).await.unwrap();
        assert_eq!((kept[0].is_none(), kept[1].as_ref().map(|kept| kept.version)), (true, Some(1)));
        assert!(!store.happened(&changes).await.unwrap());
    }
    let receipt = Some(Bytes::from(vec![7; 200_000]));
    let delivery = Delivered { id: ids[0], leaf_index: Some(1), receipt };
    pragma(&store, format!("max_page_count = {pages}")).await;
    let full = store.delivered(std::slice::from_ref(&delivery)).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    assert_eq!(store.backlog().await.unwrap(), before);
    store.commit(&changes).await.unwrap();
    store.delivered(&[delivery]).await.unwrap();
    assert_eq!(store.backlog().await.unwrap().records, 5);
}

#[tokio::test]
async fn a_change_that_keeps_the_time_of_its_stream_leaves_the_index_of_times_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let mut stream = Stream::new("s");
    stream.grow(&store, 0).await;
    let mut wrote = Vec::new();
    for keep_until in [Some(2_000), None] {
        let before = store.shared.location.wal_bytes();
        store.commit(&[Change { keep_until, ..stream.change(0) }]).await.unwrap();
        wrote.push(store.shared.location.wal_bytes() - before);
    }
    assert!(wrote[1] < wrote[0], "{wrote:?}");
}

#[tokio::test]
async fn after_an_io_error_another_connection_settles_what_may_have_happened() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let mut stream = Stream::new("s");
    let ids = stream.grow(&store, 1).await;
    // Not flushed yet: it must be durable before any later write is acknowledged.
    store.delivered(&[Delivered { id: ids[0], leaf_index: Some(1), receipt: None }]).await.unwrap();
    let settled = pragma(&store, "user_version".into()).await;
    store.shared.doubt.require(Repair::Settle);
    let change = [stream.change(1)];
    assert!(!store.happened(&change).await.unwrap());
    assert_eq!(pragma(&store, "user_version".into()).await, settled + 1);
    store.commit(&change).await.unwrap();
    assert!(store.happened(&change).await.unwrap());
    assert_eq!(store.records("s", 0, 10).await.unwrap().len(), 2);
    assert_eq!(store.backlog().await.unwrap().records, 1);
    store.check_durability().await.unwrap();
}

#[tokio::test]
async fn a_file_that_was_moved_is_written_no_more_and_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let mut stream = Stream::new("s");
    stream.grow(&store, 1).await;
    let path = folder.path().join("evidence.db");
    std::fs::rename(&path, folder.path().join("moved.db")).unwrap();
    let change = [stream.change(1)];
    let refused = store.commit(&change).await;
    assert!(matches!(refused, Err(CommitError::Failed(StoreError::Refused(_)))), "{refused:?}");
    std::fs::rename(folder.path().join("moved.db"), &path).unwrap();
    assert!(matches!(store.happened(&change).await, Err(StoreError::Refused(_))));
    assert!(matches!(store.check_durability().await, Err(StoreError::Refused(_))));
    assert_eq!(store.records("s", 0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn settings_that_would_forget_a_commit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    store.check_durability().await.unwrap();
    let mut writer = store.shared.writer.lock().await;
    sqlx::query("PRAGMA synchronous = OFF").execute(writer.connection().unwrap()).await.unwrap();
    drop(writer);
    match store.check_durability().await {
        Err(StoreError::Refused(text)) => assert!(text.contains("synchronous"), "{text}"),
        other => panic!("{other:?}"),
    }
}

/// Checks that only deliveries are written without an fsync.
#[tokio::test]
async fn a_commit_after_a_delivery_is_as_durable_as_any() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let mut stream = Stream::new("s");
    let ids = stream.grow(&store, 2).await;
    store.delivered(&[Delivered { id: ids[0], leaf_index: None, receipt: None }]).await.unwrap();
    assert_eq!(pragma(&store, "synchronous".into()).await, 1);
    stream.grow(&store, 1).await;
    assert_eq!(pragma(&store, "synchronous".into()).await, 2);
}

/// The gateway's tasks are aborted when it stops: wherever a caller was cancelled, the next one finds a consistent
/// writer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_go_away_in_the_middle_leave_nothing_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let mut stream = Stream::new("s");
    stream.grow(&store, 0).await;
    for round in 0..200_u64 {
        let kept = store.streams(&["s"]).await.unwrap().remove(0).unwrap();
        (stream.version, stream.next_seq) = (Some(kept.version), kept.next_seq);
        let changes: Vec<Change> = (0..5).map(|_| stream.change(2)).collect();
        let _ = tokio::time::timeout(Duration::from_micros(20 * (round % 60)), store.commit(&changes)).await;
    }
    // Waits for the work of cancelled callers, which ends before the next write begins.
    store.check_durability().await.unwrap();
    let kept = store.streams(&["s"]).await.unwrap().remove(0).unwrap();
    let records = store.records("s", 0, 1_000_000).await.unwrap().len() as u64;
    assert_eq!((kept.version, kept.next_seq), (1 + records / 2, records));
    assert_eq!(records % 10, 0, "groups are whole");
    assert_eq!(store.backlog().await.unwrap().records, records);
    assert!(records > 0, "some of them were in time");
}

#[tokio::test]
async fn the_write_ahead_log_is_copied_before_it_grows_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let mut streams: Vec<Stream> = (0..40).map(|n| Stream::new(&format!("stream {n}"))).collect();
    for _ in 0..15 {
        let changes: Vec<Change> = streams.iter_mut().map(|stream| large(stream.change(1))).collect();
        store.commit(&changes).await.unwrap();
    }
    let length =
        |suffix: &str| std::fs::metadata(folder.path().join(format!("evidence.db{suffix}"))).unwrap().len();
    assert!(length("-wal") < 2 * limits::WAL_BYTES, "{}", length("-wal"));
    assert!(length("") > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_ahead_log_that_was_copied_is_not_due_until_it_is_full_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let length = || std::fs::metadata(folder.path().join("evidence.db-wal")).unwrap().len();
    let mut streams: Vec<Stream> = (0..40).map(|n| Stream::new(&format!("stream {n}"))).collect();
    while length() <= limits::CHECKPOINT_BYTES {
        let changes: Vec<Change> = streams.iter_mut().map(|stream| large(stream.change(1))).collect();
        store.commit(&changes).await.unwrap();
    }
    // The checkpoint runs beside the commits, and the first commit after it begins the log anew.
    while length() > limits::CHECKPOINT_BYTES {
        streams[0].grow(&store, 1).await;
    }
    streams[0].grow(&store, 1).await;
    assert_eq!(length(), limits::CHECKPOINT_BYTES);
}

#[tokio::test]
async fn what_was_pruned_is_not_in_the_database_any_more() {
    const SECRET: &[u8] = b"what nobody may read any more";
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let mut stream = Stream::new("s");
    let mut change = stream.change(1);
    change.records[0].annex = [SECRET, &vec![7; 20_000]].concat().into();
    store.commit(std::slice::from_ref(&change)).await.unwrap();
    store
        .delivered(&[Delivered { id: change.records[0].id, leaf_index: None, receipt: None }])
        .await
        .unwrap();
    let horizon = evidence::Horizon { streams: 0, records: u64::MAX };
    assert_eq!(store.prune(horizon, 10).await.unwrap().records, 1);
    store.close().await;
    let bytes = std::fs::read(folder.path().join("evidence.db")).unwrap();
    assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET));
}

#[tokio::test]
async fn searches_read_the_indexes_in_their_order_and_sort_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let mut writer = store.shared.writer.lock().await;
    for query in [
        "SELECT s.name FROM stream s LEFT JOIN agreement a ON a.stream = s.no WHERE s.name IN ('a', 'b')",
        "SELECT r.id FROM outbox o CROSS JOIN record r ON r.no = o.record CROSS JOIN stream s ON s.no = r.stream
          WHERE o.at > 0 ORDER BY o.record LIMIT 5",
        "SELECT r.id FROM outbox o CROSS JOIN record r ON r.no = o.record CROSS JOIN stream s ON s.no = r.stream
          WHERE o.at = 0 ORDER BY o.record LIMIT 5",
        "SELECT at FROM outbox ORDER BY record LIMIT 1",
        "SELECT r.id FROM open_decision o CROSS JOIN record r ON r.no = o.record ORDER BY o.record LIMIT 5",
        "SELECT name FROM stream WHERE closed = 0 AND keep_until <= 5 ORDER BY keep_until, name LIMIT 5",
        "SELECT name FROM stream WHERE name > 'a' ORDER BY name LIMIT 5",
        "SELECT r.id FROM record r WHERE r.stream = (SELECT no FROM stream WHERE name = 'a') AND r.seq >= 5
          ORDER BY r.seq LIMIT 5",
        "WITH m (name, version) AS (VALUES ('a', 1), ('b', 2)) UPDATE stream SET version = m.version FROM m
          WHERE stream.name = m.name AND stream.version = m.version",
        "DELETE FROM outbox WHERE record IN (SELECT no FROM record WHERE id IN (VALUES (x'00'), (x'01')))",
    ] {
        let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}")));
        let rows = rows.fetch_all(writer.connection().unwrap()).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{query}: {plan:?}");
        let scans = plan.iter().filter(|step| step.starts_with("SCAN"));
        let tables: Vec<&String> = scans.filter(|step| !step.contains("CONSTANT") && !step.contains("VALUES CLAUSE") && !step.ends_with(" m")).collect();
        let in_order = ["SCAN o", "SCAN o USING COVERING INDEX outbox_retried", "SCAN outbox", "SCAN s"];
        assert!(tables.iter().all(|step| in_order.contains(&step.as_str())), "{query}: {plan:?}");
        let retried = plan.iter().any(|step| step.contains("outbox_retried"));
        assert_eq!(retried, query.contains("at = 0"), "{query}: {plan:?}");
    }
}
