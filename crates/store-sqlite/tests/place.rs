//! What happens around the file: other processes, other files in its place, tables that will not
//! be changed by hand.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use merkle::LeafIndex;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use store::contract::{Appender, ORIGIN, entry};
use store::{
    CommitError, HeadSignature, Lifecycle, LogReader, LogWriter, SignatureKind, SignatureStore, StoreError,
    TileAddress, TileStore,
};
use store_sqlite::{Settings, Sqlite};
use tempfile::TempDir;

struct Log {
    store: Sqlite,
    appender: Appender,
    path: PathBuf,
    _folder: TempDir,
}

async fn log_of(entries: u64) -> Log {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = Sqlite::open(Settings::new(&path)).await.unwrap();
    let appender = Appender::with(std::sync::Arc::new(store.clone()), entries).await;
    Log { store, appender, path, _folder: folder }
}

impl Log {
    async fn expect_refused(&mut self, why: &str) {
        let before = self.appender.head().size();
        match self.appender.append_entries(vec![entry(900)]).await {
            Err(CommitError::NotCommitted(StoreError::Refused(text))) => {
                assert!(text.contains(why), "{text}")
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(self.store.head().await.unwrap().size(), before);
        let again = self.appender.append_entries(vec![entry(901)]).await;
        assert!(again.is_err(), "nothing is written by a process that has lost its file");
        assert!(self.store.take_over("again").await.is_err());
    }

    fn sibling(&self, suffix: &str) -> PathBuf {
        PathBuf::from(format!("{}{suffix}", self.path.display()))
    }
}

/// A connection that an operator might open, with SQLite's own tools.
async fn by_hand(path: &Path) -> SqlitePool {
    SqlitePool::connect_with(SqliteConnectOptions::new().filename(path).pragma("recursive_triggers", "ON"))
        .await
        .unwrap()
}

async fn execute(path: &Path, statement: &'static str) -> Result<(), sqlx::Error> {
    let pool = by_hand(path).await;
    let done = sqlx::query(statement).execute(&pool).await.map(drop);
    pool.close().await;
    done
}

#[tokio::test]
async fn a_second_writer_is_refused_and_the_first_is_named() {
    let log = log_of(1).await;
    match Sqlite::open(Settings::new(&log.path)).await {
        Err(StoreError::InUse(text)) => assert!(text.contains(&std::process::id().to_string()), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_second_writer_by_another_name_is_refused() {
    let log = log_of(1).await;
    let link = log.path.with_file_name("link.db");
    std::os::unix::fs::symlink(&log.path, &link).unwrap();
    assert!(matches!(Sqlite::open(Settings::new(&link)).await, Err(StoreError::InUse(_))));
}

#[tokio::test]
async fn a_writer_that_is_gone_leaves_the_database_free() {
    let Log { store, appender, path, _folder } = log_of(3).await;
    let head = appender.head().clone();
    drop(appender);
    store.close().await;
    drop(store);
    let store = Sqlite::open(Settings::new(&path)).await.unwrap();
    assert_eq!(store.open(ORIGIN).await.unwrap(), head);
}

#[tokio::test]
async fn a_reader_beside_the_writer_sees_commits_and_writes_nothing() {
    let mut log = log_of(3).await;
    let reader = Sqlite::open_read_only(Settings::new(&log.path)).await.unwrap();
    assert_eq!(reader.open(ORIGIN).await.unwrap().size().get(), 3);
    log.appender.append(1).await;
    assert_eq!(reader.head().await.unwrap().size().get(), 4);
    assert!(matches!(reader.take_over("reader").await, Err(StoreError::Refused(_))));
    assert!(matches!(reader.lease("reader").await, Err(StoreError::Refused(_))));
}

#[tokio::test]
async fn r66_a_file_that_was_moved_away_is_noticed_at_the_next_commit() {
    let mut log = log_of(3).await;
    fs::rename(&log.path, log.path.with_file_name("moved.db")).unwrap();
    log.expect_refused("cannot find").await;
}

#[tokio::test]
async fn r66_a_file_that_was_replaced_is_noticed_at_the_next_commit() {
    let mut log = log_of(3).await;
    let copy = log.path.with_file_name("copy.db");
    fs::copy(&log.path, &copy).unwrap();
    fs::rename(&copy, &log.path).unwrap();
    log.expect_refused("was replaced").await;
}

#[tokio::test]
async fn r66_a_file_that_was_truncated_is_noticed_at_the_next_commit() {
    let Log { store, appender, path, _folder } = log_of(3).await;
    store.close().await; // the last one out copies everything into the file
    drop((store, appender));
    let store = Sqlite::open(Settings::new(&path)).await.unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    match store.take_over("next").await {
        Err(StoreError::Refused(text)) => assert!(text.contains("truncated"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn r66_a_write_ahead_log_that_was_removed_is_noticed_at_the_next_commit() {
    let mut log = log_of(3).await;
    fs::remove_file(log.sibling("-wal")).unwrap();
    log.expect_refused("-wal").await;
}

#[tokio::test]
async fn r66_a_second_name_for_the_file_is_noticed_at_the_next_commit() {
    let mut log = log_of(3).await;
    fs::hard_link(&log.path, log.path.with_file_name("other.db")).unwrap();
    log.expect_refused("second name").await;
}

#[tokio::test]
async fn a_lock_file_that_was_removed_is_noticed_at_the_next_commit() {
    let mut log = log_of(3).await;
    fs::remove_file(log.sibling(".lock")).unwrap();
    log.expect_refused(".lock").await;
}

#[tokio::test]
async fn r50_tables_of_a_newer_version_are_refused_by_number() {
    let Log { store, path, _folder, .. } = log_of(3).await;
    execute(&path, "INSERT INTO _sqlx_migrations VALUES (99, 'later', '2030-01-01', TRUE, x'00', 1)")
        .await
        .unwrap();
    store.close().await;
    drop(store);
    match Sqlite::open(Settings::new(&path)).await {
        Err(StoreError::Refused(text)) => assert!(text.contains("99"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let content = "these are not the bytes of a database ".repeat(100);
    fs::write(&path, &content).unwrap();
    let opened = Sqlite::open(Settings::new(&path)).await;
    assert!(matches!(opened, Err(StoreError::Damaged(_))), "{opened:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
}

#[tokio::test]
async fn no_row_of_the_log_can_be_changed_by_hand() {
    let log = log_of(300).await;
    let size = log.appender.head().size();
    let signature = HeadSignature { size, kind: SignatureKind::Receipt, kid: vec![1], bytes: vec![2].into() };
    log.store.keep_signature(&signature).await.unwrap();
    execute(&log.path, "INSERT INTO guard VALUES (x'01', 1)").await.unwrap();
    for statement in [
        "UPDATE entry SET statement = x'00' WHERE idx = 3",
        "UPDATE entry SET digest = zeroblob(32) WHERE idx = 3",
        "UPDATE entry SET statement = NULL, rule = 'other' WHERE idx = 3",
        "INSERT OR REPLACE INTO entry VALUES (3, zeroblob(32), 0, '', '', x'00')",
        "DELETE FROM entry WHERE idx = 299",
        "UPDATE batch SET root = zeroblob(32)",
        "DELETE FROM batch",
        "UPDATE seen SET idx = 1",
        "DELETE FROM seen",
        "UPDATE guard SET idx = 2",
        "DELETE FROM guard",
        "UPDATE head_signature SET bytes = x'00'",
        "DELETE FROM head_signature",
        "UPDATE tile SET data = zeroblob(8192) WHERE number = 0 AND level = 0",
        "UPDATE tile SET data = zeroblob(64) WHERE number = 0 AND level = 1",
        "DELETE FROM tile",
        "UPDATE log SET size = size - 1",
        "UPDATE log SET epoch = epoch - 1",
        "UPDATE log SET origin = 'other'",
        "DELETE FROM log",
    ] {
        assert!(execute(&log.path, statement).await.is_err(), "{statement}");
    }
    execute(&log.path, "UPDATE entry SET statement = NULL WHERE idx = 3").await.unwrap();
    assert_eq!(log.store.entry(LeafIndex::new(3)).await.unwrap().unwrap().statement, None);
}

#[tokio::test]
async fn every_hot_look_up_uses_its_key() {
    let log = log_of(10).await;
    for (select, forbidden) in [
        (
            "SELECT s.key, s.idx, e.digest FROM seen s LEFT JOIN entry e ON e.idx = s.idx WHERE s.key IN (?,?,?)",
            "SCAN",
        ),
        ("SELECT key, idx FROM guard WHERE key IN (?,?,?)", "SCAN"),
        ("SELECT data FROM tile WHERE level = ? AND number = ? ORDER BY first", "SCAN"),
        ("SELECT * FROM batch WHERE size = ?", "SCAN"),
        ("SELECT * FROM entry WHERE idx >= ? ORDER BY idx LIMIT ?", "SCAN"),
        ("SELECT size FROM head_signature WHERE kind = ? ORDER BY size DESC LIMIT 1", "TEMP B-TREE"),
    ] {
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {select}"));
        let plan: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(explain).fetch_all(&by_hand(&log.path).await).await.unwrap();
        for (.., step) in plan {
            assert!(!step.starts_with(forbidden) && !step.contains("TEMP B-TREE"), "{select}: {step}");
        }
    }
    assert!(log.store.tiles(&[TileAddress { level: 0, number: 0 }]).await.unwrap()[0].is_some());
}
