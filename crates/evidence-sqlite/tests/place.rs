//! What happens around the file: other processes, other files in its place, other people.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use evidence::contract::{Stream, refused};
use evidence::{CommitError, EvidenceStore, Instances, Outbox, StoreError};
use evidence_sqlite::{Settings, Sqlite, SqliteReader};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

struct TestDatabase {
    path: PathBuf,
    _folder: TempDir,
}

impl TestDatabase {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { path: folder.path().join("evidence.db"), _folder: folder }
    }

    async fn open(&self, instance: &str) -> Result<Sqlite, StoreError> {
        Sqlite::open(Settings::new(&self.path, instance)).await
    }

    fn sibling(&self, suffix: &str) -> PathBuf {
        PathBuf::from(format!("{}{suffix}", self.path.display()))
    }

    /// Runs a statement as somebody with SQLite's own tools might.
    async fn by_hand(&self, statement: &'static str) -> Result<(), sqlx::Error> {
        let options = SqliteConnectOptions::new().filename(&self.path).pragma("recursive_triggers", "ON");
        let pool = SqlitePool::connect_with(options).await?;
        let done = sqlx::query(statement).execute(&pool).await.map(drop);
        pool.close().await;
        done
    }
}

/// V-40: goals, rationales and arguments are in it.
#[tokio::test]
async fn the_plaintext_is_its_owners_alone_to_read() {
    let database = TestDatabase::new();
    let store = database.open("one").await.unwrap();
    Stream::new("s").grow(&store, 3).await;
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let mode = fs::metadata(database.sibling(suffix)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{suffix}");
    }
}

#[tokio::test]
async fn evidence_is_looked_at_beside_its_writer_and_after_it_and_nothing_is_touched() {
    let database = TestDatabase::new();
    let store = database.open("one").await.unwrap();
    let mut stream = Stream::new("s");
    stream.grow(&store, 3).await;
    let look = SqliteReader::at(&database.path).await.unwrap();
    assert_eq!(look.records("s", 1, 10).await.unwrap().len(), 2);
    // What is committed while it looks is there at the next look, and the writer was never in the way.
    stream.grow(&store, 1).await;
    assert_eq!(look.records("s", 1, 10).await.unwrap().len(), 3);
    look.close().await;
    store.close().await;
    drop(store);

    let files = || {
        let all = fs::read_dir(database.path.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
        let mut all: Vec<_> = all.map(|path| (fs::read(&path).unwrap(), path)).collect();
        all.sort_by(|a, b| a.1.cmp(&b.1));
        all
    };
    let before = files();
    let look = SqliteReader::at(&database.path).await.unwrap();
    assert_eq!(look.records("s", 0, 10).await.unwrap().len(), 4);
    look.close().await;
    assert!(files() == before);
    assert!(SqliteReader::at(&database.sibling(".other")).await.is_err());
}

#[tokio::test]
async fn a_second_process_is_told_that_another_one_has_the_database() {
    let database = TestDatabase::new();
    let first = database.open("one").await.unwrap();
    assert!(matches!(database.open("two").await, Err(StoreError::InUse(_))));
    first.close().await;
    drop(first);
    database.open("two").await.unwrap();
}

/// The gateway opens it in a task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_second_of_many_is_refused() {
    let database = TestDatabase::new();
    let opening = (0..4).map(|n| {
        let settings = Settings::new(&database.path, format!("run {n}"));
        tokio::spawn(async move { Sqlite::open(settings).await })
    });
    let mut opened = Vec::new();
    for one in opening.collect::<Vec<_>>() {
        opened.push(one.await.unwrap());
    }
    assert_eq!(opened.iter().filter(|outcome| outcome.is_ok()).count(), 1);
}

#[tokio::test]
async fn a_run_that_takes_the_name_of_one_with_open_decisions_is_refused() {
    let database = TestDatabase::new();
    let store = database.open("one").await.unwrap();
    store.commit(&[Stream::new("s").serve().1]).await.unwrap();
    store.close().await;
    drop(store);
    assert!(matches!(database.open("one").await, Err(StoreError::Refused(_))));
    assert!(matches!(database.open("").await, Err(StoreError::Refused(_))));
    let next = database.open("two").await.unwrap();
    assert_eq!(next.orphans(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_that_was_replaced_takes_no_commit() {
    for suffix in ["", "-wal"] {
        let database = TestDatabase::new();
        let store = database.open("one").await.unwrap();
        let mut stream = Stream::new("s");
        stream.grow(&store, 1).await;
        fs::rename(database.sibling(suffix), database.sibling(".aside")).unwrap();
        fs::copy(database.sibling(".aside"), database.sibling(suffix)).unwrap();
        for _ in 0..2 {
            let outcome = store.commit(&[stream.clone().change(1)]).await;
            assert!(matches!(outcome, Err(CommitError::Failed(StoreError::Refused(_)))), "{outcome:?}");
        }
        assert!(store.delivered(&[]).await.is_ok());
        assert!(matches!(store.unstick().await, Err(StoreError::Refused(_))));
        assert_eq!(store.streams(&["s"]).await.unwrap()[0].as_ref().unwrap().version, 1, "reads go on");
    }
}

#[tokio::test]
async fn the_counts_are_those_of_the_file_after_a_restart() {
    let database = TestDatabase::new();
    let mut stream = Stream::new("s");
    let store = database.open("one").await.unwrap();
    let ids = stream.grow(&store, 5).await;
    store.stuck(&[refused(ids[1])]).await.unwrap();
    let before = store.backlog().await.unwrap();
    store.close().await;
    drop(store);
    let store = database.open("two").await.unwrap();
    assert_eq!(store.backlog().await.unwrap(), before);
    stream.grow(&store, 1).await;
    assert_eq!(
        store.pending(10).await.unwrap().len(),
        5,
        "what an earlier run left is delivered by this one"
    );
}

#[tokio::test]
async fn the_tables_refuse_what_the_promise_rules_out() {
    let database = TestDatabase::new();
    let store = database.open("one").await.unwrap();
    let mut stream = Stream::new("s");
    store.commit(&[stream.serve().1]).await.unwrap();
    store.close().await;
    drop(store);
    for statement in [
        "UPDATE record SET statement = x'00'",
        "UPDATE record SET seq = 5",
        "DELETE FROM record",
        "DELETE FROM outbox",
        "DELETE FROM stream",
        "UPDATE stream SET version = version",
        "UPDATE stream SET version = version + 1, next_seq = 0",
        "UPDATE stream SET version = version + 1, name = 'other'",
    ] {
        assert!(database.by_hand(statement).await.is_err(), "{statement}");
    }
    let store = database.open("two").await.unwrap();
    assert_eq!(store.records("s", 0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let database = TestDatabase::new();
    database.open("one").await.unwrap().close().await;
    database
        .by_hand(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'newer', true, x'00', 1)",
        )
        .await
        .unwrap();
    assert!(matches!(database.open("two").await, Err(StoreError::Refused(_))));
}
